// What becomes of a lane's sums: a partial, or the row's result.
#pragma once

#include "pyg_sparse/operands.h"
#include "vec.cuh"

namespace pyg_sparse::cuda {

// A row of out or, if that is not -1, of partial: in one register.
class Target {
 public:
  __device__ Target() {}
  __device__ Target(int32_t row, int32_t partial) : packed_(partial < 0 ? row : ~partial) {}
  __device__ bool is_partial() const { return packed_ < 0; }
  __device__ int64_t row() const { return packed_; }
  __device__ int64_t partial() const { return ~packed_; }

 private:
  int32_t packed_ = 0;
};

// Features k .. k + kVec - 1. With kWhole, all of them are the lane's and out is aligned; else they end before `end`.
template <typename T, int kVec, bool kWhole>
__device__ void write_sums(const SpmmArgs& args, Target target, int64_t k, int64_t end, Accumulate<T> (&sum)[kVec]) {
  using A = Accumulate<T>;
  const auto has = [&](int v) { return kWhole || k + v < end; };
  if (target.is_partial()) {
    A* to = static_cast<A*>(args.partial) + target.partial() * args.k + k;
#pragma unroll
    for (int v = 0; v < kVec; ++v) {
      if (has(v)) to[v] = sum[v];
    }
    return;
  }
  const int64_t row = target.row();
  const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
  const A self_scale = args.self_scale ? static_cast<const A*>(args.self_scale)[row] : A(0);
  const T* self = static_cast<const T*>(args.self) + row * args.ldself + k;
  T* to = static_cast<T*>(args.out) + row * args.k + k;
  Vec<T, kVec> own{};
  if constexpr (kWhole) {
    if (args.self_scale) own = load_in_order<T, kVec>(self);
  }
#pragma unroll
  for (int v = 0; v < kVec; ++v) {
    if (!has(v)) continue;
    sum[v] *= row_scale;
    if (args.self_scale) sum[v] += self_scale * (kWhole ? own[v] : widen(self[v]));
    if (args.bias) sum[v] += static_cast<const A*>(args.bias)[k + v];
    if (args.relu) sum[v] = relu(sum[v]);
    if constexpr (!kWhole) to[v] = narrow<T>(sum[v]);
  }
  if constexpr (kWhole) store<T, kVec>(to, sum);
}

}  // namespace pyg_sparse::cuda
