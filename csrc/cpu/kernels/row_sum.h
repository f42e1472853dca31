// spmm: the sum over one row's entries.
#pragma once

#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

template <typename T, bool kWeighted>
PYG_SPARSE_INLINE Accumulate<T> coefficient(const SpmmArgs& args, int64_t head, const SlotMap& slot, int64_t position,
                                            int64_t col) {
  Accumulate<T> result = 1;
  if constexpr (kWeighted) {
    if (args.value) {
      const int64_t at = args.stored ? position : edge_of(slot, position) * args.heads + head;
      result = widen(static_cast<const T*>(args.value)[at]);
    }
    if (args.col_scale) result *= static_cast<const Accumulate<T>*>(args.col_scale)[col];
  }
  return result;
}

// Writes features k .. of a finished sum to a row of out, with the epilogue, or to a row of partial, as they are.
template <typename T, int kLanes, int kParts>
PYG_SPARSE_INLINE void write_sum(const SpmmArgs& args, bool plain, int64_t row, int64_t partial, int64_t k,
                                 Lanes<Accumulate<T>, kLanes> (&sum)[kParts]) {
  using A = Accumulate<T>;
  if (partial >= 0) {
    A* to = static_cast<A*>(args.partial) + partial * args.k + k;
    for (int j = 0; j < kParts; ++j) store<A, kLanes>(to + j * kLanes, sum[j]);
    return;
  }
  T* to = static_cast<T*>(args.out) + row * args.k + k;
  if (!plain) {
    if (args.row_scale) {
      const A scale = static_cast<const A*>(args.row_scale)[row];
      for (int j = 0; j < kParts; ++j) sum[j] *= scale;
    }
    if (args.self_scale) {
      const A scale = static_cast<const A*>(args.self_scale)[row];
      const T* self = static_cast<const T*>(args.self) + row * args.ldself + k;
      for (int j = 0; j < kParts; ++j) sum[j] += scale * load<T, kLanes>(self + j * kLanes);
    }
    if (args.bias) {
      const A* bias = static_cast<const A*>(args.bias) + k;
      for (int j = 0; j < kParts; ++j) sum[j] += load<A, kLanes>(bias + j * kLanes);
    }
    if (args.relu) {
      for (int j = 0; j < kParts; ++j) sum[j] = sum[j] < 0 ? Lanes<A, kLanes>{} : sum[j];  // NaN stays NaN
    }
    if constexpr (kParts * kLanes * sizeof(T) >= 64) {  // less would be part of a line
      if (args.stream) {
        for (int j = 0; j < kParts; ++j) stream<T, kLanes>(to + j * kLanes, sum[j]);
        return;
      }
    }
  }
  for (int j = 0; j < kParts; ++j) store<T, kLanes>(to + j * kLanes, sum[j]);
}

PYG_SPARSE_INLINE bool is_plain(const SpmmArgs& args) {
  return !args.row_scale && !args.self_scale && !args.bias && !args.relu && !args.stream;
}

template <typename T, typename S>
PYG_SPARSE_INLINE void sum_entries(const SpmmArgs& args, const Block& block, const int32_t* rows, const int32_t* col,
                                   const SlotMap& slot, const Run& run, bool plain) {
  using A = Accumulate<T>;
  constexpr int kLanes = kLanesIn<A, S::kWidth>, kParts = S::kWidth / kLanes;
  constexpr bool kPairs = kParts <= 4;  // an addition waits for the one before
  const T* x = static_cast<const T*>(args.x) + (block.k - args.first);
  using Sums = Lanes<A, kLanes>[kParts];
  Sums sum = {};
  const auto add = [&](int64_t p, Sums& to) PYG_SPARSE_LAMBDA_INLINE {
    const A weight = coefficient<T, S::kWeighted>(args, block.head, slot, p, col[p]);
    messages<T, S>(x, args.ldx, col, p, run.last, weight,
                   [&](int j, Lanes<A, kLanes> message) PYG_SPARSE_LAMBDA_INLINE { to[j] += message; });
  };
  if (!plain && args.self_scale) {
    prefetch_row(static_cast<const T*>(args.self) + rows[run.ahead] * args.ldself + block.k, S::kWidth);
  }
  int64_t p = run.begin;
  if constexpr (kPairs) {
    Sums other = {};
    for (; p + 2 <= run.end; p += 2) add(p, sum), add(p + 1, other);
    for (int j = 0; j < kParts; ++j) sum[j] += other[j];
  }
  for (; p < run.end; ++p) add(p, sum);
  if constexpr (kInPairs<T, S>) {
    for (int j = 0; j < kParts; j += 2) join<kLanes>(sum[j], sum[j + 1]);
  }
  write_sum<T, kLanes, kParts>(args, plain, run.row, run.partial, block.k, sum);
}

template <typename T, typename S, typename Format>
void spmm_range(const Format& a, const SpmmArgs& given, Block block) {
  const SpmmArgs args = given;  // nothing that is written can be part of this copy
  const bool plain = is_plain(args);
  for_each_run(a, block.first, block.last, block.until, [&](const Run& run) PYG_SPARSE_LAMBDA_INLINE {
    sum_entries<T, S>(args, block, a.row, a.col, a.slot, run, plain);
  });
}

template <typename T>
constexpr int kMostFeatures = std::min(8 * kVectorBytes, 256) / static_cast<int>(sizeof(Accumulate<T>));

template <typename Format>
void spmm(const Format& a, const SpmmArgs& args, int64_t first, int64_t last) {
  const int64_t width = args.k / args.heads, end = args.last > 0 ? args.last : width;
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&]<bool kWeighted, bool kPrefetch>() {
      for_blocks_of<kWeighted, kPrefetch, kMostFeatures<T>>(
          width, args.heads, args.first, end, first, last,
          [&](auto shape, const Block& block) { spmm_range<T, decltype(shape)>(a, args, block); });
    };
    if (args.value || args.col_scale) {
      args.prefetch ? run.template operator()<true, true>() : run.template operator()<true, false>();
    } else {
      args.prefetch ? run.template operator()<false, true>() : run.template operator()<false, false>();
    }
  });
  if (args.stream) stream_fence();
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
