#include "launch.cuh"
#include "run.cuh"

namespace pyg_sparse::cuda {

template <>
struct Walker<Csr> {
  static constexpr int kBlocks = 4, kWeightedBlocks = 4, kGroupBlocks = 3, kDotBlocks = 3;

  template <bool kWeighted, typename S>
  __device__ static void sum(const Csr& a, const SpmmArgs& args, const Place<S>& place) {
    const Bounds run = bounds_of(a, place.item);
    const Target target = target_of(a, place.item);
    RowSum<kWeighted, S> total(args, place);
    total.add_run(a.col, run.begin, run.end);
    total.finish(target);
  }

  template <typename S>
  __device__ static void dot(const Csr& a, const SddmmArgs& args, int64_t item) {
    const bool is_part = item < a.parts;
    const int64_t r = is_part ? long_row_of(a, item) : a.long_rows + item - a.parts;
    const int64_t* bound = is_part ? a.part_ptr + item : a.rowptr + r;
    const int64_t row = a.row[r];
    if constexpr (S::kWhole) return dot_row<S>(args, a.col, bound[0], bound[1], row);
    dot_entries<S, true>(args, a.col, a.slot, bound[0], bound[1], [=](int64_t) { return row; });
  }

  // The last long row whose parts start at or before this one.
  __device__ static int64_t long_row_of(const Csr& a, int64_t part) {
    int64_t low = 0;
    for (int64_t high = a.long_rows; high - low > 1;) {
      const int64_t middle = (low + high) / 2;
      (a.shared_ptr[middle] <= part ? low : high) = middle;
    }
    return low;
  }
};

int spmm(const Csr& a, const SpmmArgs& args, void* stream) { return launch_spmm(a, args, stream); }
int sddmm(const Csr& a, int64_t nnz, const SddmmArgs& args, void* stream) { return launch_sddmm(a, nnz, args, stream); }

}  // namespace pyg_sparse::cuda
