#include "launch.cuh"
#include "run.cuh"

namespace pyg_sparse::cuda {

template <>
struct Walker<Hyb> {
  static constexpr int kBlocks = 3, kWeightedBlocks = 3, kGroupBlocks = 3, kDotBlocks = 3;

  template <bool kWeighted, typename S>
  __device__ static void sum(const Hyb& a, const SpmmArgs& args, const Place<S>& place) {
    const Bounds run = bounds_of(a, place.item);
    const Target target = target_of(a, place.item);
    RowSum<kWeighted, S> total(args, place);
    total.add_run(a.col, run.begin, run.end);
    total.finish(target);
  }

  template <typename S>
  __device__ static void dot(const Hyb& a, const SddmmArgs& args, int64_t item) {
    const Bounds run = bounds_of(a, item);
    const int64_t row = a.row[item];
    dot_entries<S, true>(args, a.col, a.slot, run.begin, run.end, [=](int64_t) { return row; });
  }
};

int spmm(const Hyb& a, const SpmmArgs& args, void* stream) { return launch_spmm(a, args, stream); }
int sddmm(const Hyb& a, int64_t nnz, const SddmmArgs& args, void* stream) { return launch_sddmm(a, nnz, args, stream); }

}  // namespace pyg_sparse::cuda
