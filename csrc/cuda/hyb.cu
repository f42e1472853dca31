#include "launch.cuh"
#include "pyg_sparse/hyb.h"

namespace pyg_sparse::cuda {

template <>
struct Walker<Hyb> {
  template <typename T, bool kWeighted, typename S>
  __device__ static void sum(const Hyb& a, const SpmmArgs& args, const Place<S>& place) {
    Accumulate<T> total[S::kVec] = {};
    const HybBucket bucket = bucket_of(a, place.item);
    const int64_t begin = bucket.first_entry + (place.item - bucket.first_row) * bucket.width;
    sum_entries<T, kWeighted>(args, place, a.col, a.slot, begin, begin + bucket.width, total);
    finish<T>(args, place, a.row[place.item], a.partial[place.item], total);
  }

  template <typename T, typename S>
  __device__ static void dot(const Hyb& a, const SddmmArgs& args, const Place<S>& place) {
    const HybBucket bucket = bucket_of(a, place.item);
    const int64_t begin = bucket.first_entry + (place.item - bucket.first_row) * bucket.width;
    const int32_t row = a.row[place.item];
    dot_entries<T>(args, place, a.col, a.slot, begin, begin + bucket.width, [=](int64_t) { return row; });
  }
};

int spmm(const Hyb& a, int64_t nnz, const SpmmArgs& args, void* stream) { return launch_spmm(a, nnz, args, stream); }
int sddmm(const Hyb& a, int64_t nnz, const SddmmArgs& args, void* stream) { return launch_sddmm(a, nnz, args, stream); }

}  // namespace pyg_sparse::cuda
