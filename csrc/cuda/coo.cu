#include "launch.cuh"
#include "pyg_sparse/coo.h"

namespace pyg_sparse::cuda {

template <>
struct Walker<Coo> {
  static constexpr int kBlocks = 3, kWeightedBlocks = 2, kGroupBlocks = 2, kDotBlocks = 2;

  // Batches of kRow entries; inside a batch, runs of equal rows are found by comparing each lane with its neighbour.
  template <bool kWeighted, typename S>
  __device__ static void sum(const Coo& a, const SpmmArgs& args, const Place<S>& place) {
    wait_for_stream();
    const int64_t begin = a.chunk_ptr[place.item], end = a.chunk_ptr[place.item + 1];
    if (begin == end) return;
    const int shift = (threadIdx.x % kWarp) - place.lane;
    RowSum<kWeighted, S> total(args, place);
    int32_t open = a.row[begin];
    int32_t partial = a.head[place.item];
    for (int64_t base = begin; base < end; base += S::kRow) {
      const int count = end - base < S::kRow ? static_cast<int>(end - base) : S::kRow;
      const auto entry = total.load_entry(a.col, base + place.lane, end);
      const int32_t row = place.lane < count ? a.row[base + place.lane] : -1;
      int32_t before = __shfl_up_sync(place.mask, row, 1, S::kRow);
      if (place.lane == 0) before = open;
      // Bit j: a run starts at lane j.
      unsigned starts = __ballot_sync(place.mask, place.lane < count && row != before) >> shift;
      if constexpr (S::kRow < kWarp) starts &= (1u << S::kRow) - 1u;
      int first = 0;
      while (starts) {
        const int next = __ffs(starts) - 1;
        starts &= starts - 1;
        total.add(entry, first, next);
        total.finish({open, partial});
        open = __shfl_sync(place.mask, row, next, S::kRow);
        partial = -1;
        first = next;
      }
      total.add(entry, first, count);
    }
    // The row still open is the chunk's last; when it is also the first, head alone speaks for it.
    if (open != a.row[begin]) partial = a.tail[place.item];
    total.finish({open, partial});
  }

  template <typename S>
  __device__ static void dot(const Coo& a, const SddmmArgs& args, int64_t item) {
    dot_entries<S, false>(args, a.col, a.slot, a.chunk_ptr[item], a.chunk_ptr[item + 1],
                          [&](int64_t position) -> int64_t { return a.row[position]; });
  }
};

int spmm(const Coo& a, const SpmmArgs& args, void* stream) { return launch_spmm(a, args, stream); }
int sddmm(const Coo& a, int64_t nnz, const SddmmArgs& args, void* stream) { return launch_sddmm(a, nnz, args, stream); }

}  // namespace pyg_sparse::cuda
