// Which shape a launch takes, and the launch itself. Every format's launcher goes through here.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "row_sum.cuh"

namespace pyg_sparse::cuda {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline bool aligned(const void* pointer, int64_t stride_bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % 16 == 0 && stride_bytes % 16 == 0;
}

// Walker<Format> is a format's whole device side: sum() and dot() process one work item.
template <typename Format>
struct Walker;

// One block per SM is all that is asked of the compiler, so that it never spills to raise occupancy by itself.
template <typename Format, typename T, bool kWeighted, typename S>
__global__ __launch_bounds__(kBlock, 1) void spmm_kernel(Format a, SpmmArgs args, Grid grid) {
  const Place<S> place(grid, args.k);
  if (place.item < grid.items) Walker<Format>::template sum<T, kWeighted>(a, args, place);
}

template <typename Format, typename T, typename S>
__global__ __launch_bounds__(kBlock, 1) void sddmm_kernel(Format a, SddmmArgs args, Grid grid) {
  const Place<S> place(grid, args.k);
  if (place.item < grid.items) Walker<Format>::template dot<T>(a, args, place);
}

// run(shape, grid, blocks) launches; its error is returned. k is cut into equal slices, in whole loads.
template <typename S, typename Run>
int launch_shape(int64_t items, int64_t k, const Run& run) {
  if (items == 0 || k == 0) return cudaSuccess;
  const int64_t slices = ceil_div(k, S::kSlice);
  const int64_t load = S::kVector ? S::kVec : 1;
  const Grid grid{items, ceil_div(items, S::kGroups), ceil_div(ceil_div(k, slices), load) * load};
  const int64_t blocks = grid.blocks_per_slice * slices;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  run(S{}, grid, static_cast<unsigned>(blocks));
  return cudaGetLastError();
}

// A whole warp takes an item of kLongItem entries or more on average; shorter ones share a warp, 8 lanes each
// (docs/kernel-notes.md has the measurements).
constexpr int64_t kLongItem = 128;

template <typename T, bool kVector, int kVec, int kFeat, typename Run>
int launch_rows(int64_t items, int64_t nnz, int64_t k, const Run& run) {
  if constexpr (kFeat <= 8) {
    if (nnz < kLongItem * items) return launch_shape<Shape<T, kVector, kVec, kFeat, 8>>(items, k, run);
  }
  return launch_shape<Shape<T, kVector, kVec, kFeat, kWarp>>(items, k, run);
}

// Slices of 128 bytes: in fp32 a 233,000-row slice of x is 30 MB and stays in an L2 of 50 MB or more.
template <typename Format>
int launch_spmm(const Format& a, int64_t nnz, const SpmmArgs& args, void* stream) {
  const bool weighted = args.value || args.col_scale;
  return visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto shape, const Grid& grid, unsigned blocks) {
      using S = decltype(shape);
      const auto kernel = weighted ? spmm_kernel<Format, T, true, S> : spmm_kernel<Format, T, false, S>;
      kernel<<<blocks, kBlock, 0, static_cast<cudaStream_t>(stream)>>>(a, args, grid);
    };
    constexpr int kVec = kFullVec<T>;
    const int64_t n = items(a), k = args.k, size = sizeof(T);
    const bool vectors = k % kVec == 0 && aligned(args.x, args.ldx * size) && aligned(args.out, k * size) &&
                         (!args.self_scale || aligned(args.self, args.ldself * size));
    if (vectors && k <= 2 * kVec) return launch_rows<T, true, kVec, 2>(n, nnz, k, run);
    if (vectors) return launch_rows<T, true, kVec, 8>(n, nnz, k, run);
    if (k == 1) return launch_rows<T, false, 1, 1>(n, nnz, k, run);
    return launch_rows<T, false, kVec, 8>(n, nnz, k, run);
  });
}

template <typename Format>
int launch_sddmm(const Format& a, int64_t nnz, const SddmmArgs& args, void* stream) {
  return visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto shape, const Grid& grid, unsigned blocks) {
      const auto kernel = sddmm_kernel<Format, T, decltype(shape)>;
      kernel<<<blocks, kBlock, 0, static_cast<cudaStream_t>(stream)>>>(a, args, grid);
    };
    constexpr int kVec = kFullVec<T>;
    const int64_t size = sizeof(T);
    const bool vectors = args.k % kVec == 0 && aligned(args.q, args.ldq * size) && aligned(args.key, args.ldk * size);
    constexpr int64_t kWholeRow = 1;  // a group walks all of K itself, so there is one slice
    if (vectors) return launch_rows<T, true, kVec, 8>(items(a), nnz, kWholeRow, run);
    return launch_rows<T, false, 1, 8>(items(a), nnz, kWholeRow, run);
  });
}

}  // namespace pyg_sparse::cuda
