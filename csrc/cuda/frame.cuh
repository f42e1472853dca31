// Rows of x that no vector load fits, because their start or length is not a multiple of 16 bytes. Lanes load the
// aligned words around a row: its frame. An entry's phase is how many elements of the frame lie before the row. Sums
// are kept in the frame of the phase at hand and shifted when the phase changes; plans sort the columns of a row so
// that it rarely does (pyg_sparse/formats/rows.py). What lies outside the row is summed as well, and never written.
#pragma once

#include "place.cuh"
#include "pyg_sparse/operands.h"

namespace pyg_sparse::cuda {

// Element offsets from an aligned address before x; x has fewer than 2^32 elements.
template <typename S>
struct Frame {
  using T = typename S::T;
  const T* base;
  uint32_t start;      // of the slice in row 0
  uint32_t last_word;  // that holds any of x; no load goes past it

  __device__ Frame(const SpmmArgs& args, const Place<S>& place) {
    const auto address = reinterpret_cast<uintptr_t>(args.x);
    const uintptr_t before = address % (sizeof(T) * S::kVec);
    base = reinterpret_cast<const T*>(address - before);
    start = static_cast<uint32_t>(before / sizeof(T) + place.begin);
    const int64_t elements = before / sizeof(T) + (args.num_cols - 1) * args.ldx + args.k;
    last_word = static_cast<uint32_t>((elements - 1) / S::kVec);
    asm("" : "+l"(base));  // as in RowSum
  }
  // Where the slice of a column's row starts.
  __device__ uint32_t element(uint32_t col, uint32_t ldx) const { return start + col * ldx; }
  __device__ Vec<T, S::kVec> load_word(const Place<S>& place, uint32_t element) const {
    const uint32_t word = element / S::kVec + static_cast<uint32_t>(place.feature);
    return load<T, S::kVec>(base + static_cast<uint64_t>(word < last_word ? word : last_word) * S::kVec);
  }
  __device__ static int phase(uint32_t element) { return static_cast<int>(element % S::kVec); }
};

// Moves the sums of every neighbour by -kVec < shift < kVec elements towards the higher lanes.
template <typename S, typename A>
__device__ void shift_frame(const Place<S>& place, int shift, A (&sum)[S::kVec]) {
#pragma unroll
  for (int step = 1; step < S::kVec; step *= 2) {
    A turned[S::kVec];
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) turned[v] = sum[(v + S::kVec - step) % S::kVec];
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) sum[v] = shift & step ? turned[v] : sum[v];
  }
  const int from = place.lane + (shift > 0 ? -1 : 1);
#pragma unroll
  for (int v = 0; v < S::kVec; ++v) {
    const A other = __shfl_sync(place.mask, sum[v], from, S::kRow);
    if (shift > 0 ? v < shift : v >= S::kVec + shift) sum[v] = other;
  }
}

}  // namespace pyg_sparse::cuda
