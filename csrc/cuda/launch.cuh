// Which shape a launch takes, and the launch itself. Every format's launcher goes through here.
#pragma once

#include "division.cuh"
#include "launch_short.cuh"
#include "overlap.cuh"
#include "pyg_sparse/combine.h"
#include "row_dot.cuh"
#include "row_sum.cuh"
#include "spmv.cuh"

namespace pyg_sparse::cuda {

// Walker<Format> is a format's whole device side: sum() and dot() process one work item. kBlocks, kWeightedBlocks,
// kGroupBlocks (for rows that share a warp) and kDotBlocks are how many of their blocks can be made to fit a
// multiprocessor without a spill.
template <typename Format>
struct Walker;

template <typename Format, bool kWeighted, typename S>
constexpr int blocks_to_fit() {
  if (!kBudgeted) return 1;
  if (S::kFrame) return 3;
  if (S::kUnroll <= 2) return 5;
  if (S::kRow < kWarp) return Walker<Format>::kGroupBlocks;
  return kWeighted ? Walker<Format>::kWeightedBlocks : Walker<Format>::kBlocks;
}

template <typename Format, bool kWeighted, typename S>
__global__ __launch_bounds__(kBlock, (blocks_to_fit<Format, kWeighted, S>())) void spmm_kernel(Format a, SpmmArgs args,
                                                                                               Grid grid) {
  const Place<S> place(grid);
  if (place.item < grid.items) Walker<Format>::template sum<kWeighted>(a, args, place);
}

template <typename Format, typename S>
constexpr int dot_blocks_to_fit() {
  if (!kBudgeted) return 1;
  if (S::kWhole) return 4;
  return S::kRow < kWarp && S::kUnroll == 8 ? 2 : Walker<Format>::kDotBlocks;
}

template <typename Format, typename S>
__global__ __launch_bounds__(kBlock, (dot_blocks_to_fit<Format, S>())) void sddmm_kernel(Format a, SddmmArgs args,
                                                                                         int64_t count) {
  wait_for_stream();
  const int64_t item = static_cast<int64_t>(blockIdx.x) * (blockDim.x / S::kRow) + threadIdx.x / S::kRow;
  if (item < count) Walker<Format>::template dot<S>(a, args, item);
}

// run(shape, grid, blocks, threads) launches, and returns the error.
template <typename S, typename Run>
int launch_shape(const Work& work, const Division& division, const Run& run) {
  const int neighbours = S::kRow / division.lanes;
  const int64_t slices = division.slices * work.heads;
  const int threads = block_threads(work.items * slices * S::kRow);
  const int64_t blocks_per_slice = ceil_div(work.items, threads / S::kRow);
  const int64_t blocks = blocks_per_slice * slices;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  const int pass = S::kUnroll * neighbours;
  if (pass == 0 || pass > S::kRow) return cudaErrorInvalidConfiguration;
  const Grid grid{work.items,
                  static_cast<uint32_t>(blocks_per_slice),
                  static_cast<uint32_t>(division.slices),
                  work.width,
                  division.slice,
                  division.lanes,
                  neighbours,
                  S::kRow / pass * pass,
                  reciprocal_of(division.lanes)};
  return run(S{}, grid, static_cast<unsigned>(blocks), threads);
}

// As many entries in flight as fill a group's batch: at most 8, and 4 of 8 features each, whose registers would
// otherwise leave room for too few warps.
template <typename T, int kVec, int kRow, bool kFrame, typename Run>
int launch_unrolled(const Work& work, int max_lanes, const Run& run) {
  constexpr int kMost = kVec < 8 && !kFrame ? 8 : 4;
  const Division division = divide<Shape<T, kVec, kRow, 1, kFrame>>(work.width, max_lanes);
  const int neighbours = kRow / division.lanes;
  if (neighbours * kMost <= kRow) return launch_shape<Shape<T, kVec, kRow, kMost, kFrame>>(work, division, run);
  if (neighbours * 4 <= kRow) return launch_shape<Shape<T, kVec, kRow, 4, kFrame>>(work, division, run);
  if (neighbours * 2 <= kRow) return launch_shape<Shape<T, kVec, kRow, 2, kFrame>>(work, division, run);
  return launch_shape<Shape<T, kVec, kRow, 1, kFrame>>(work, division, run);
}

// A whole warp takes an item of kLongItem entries or more on average. Shorter ones share a warp, with a group of 8 or
// 16 lanes each, if there are enough of them to fill the device and a row's features fit the lanes
// (docs/kernel-notes.md has the measurements).
constexpr int64_t kLongItem = 128;

inline bool are_short(const Work& work) { return work.nnz < kLongItem * work.items; }
inline bool share_a_warp(const Work& work, int64_t lanes, int group) {
  return lanes <= group && are_short(work) &&
         work.items * work.heads >= kWarpsToFill * (kWarp / group) * attribute(cudaDevAttrMultiProcessorCount);
}

// Lanes across features. Slices of 16 lanes, 256 bytes, if with them the slice of x at work stays in L2 for the most
// part; else, and where rows are short, as wide as can be, for then a further slice reads indices and bounds again for
// nothing.
inline int feature_lanes(const Work& work, int64_t num_cols, int load_bytes) {
  constexpr int kNarrow = 16;
  const int64_t l2 = attribute(cudaDevAttrL2CacheSize);
  return !are_short(work) && num_cols * kNarrow * load_bytes <= l2 + l2 / 4 ? kNarrow : kWarp;
}

template <typename Format>
int launch_spmm(const Format& a, const SpmmArgs& args, void* stream) {
  const bool weighted = args.value || args.col_scale;
  const Work work{items(a), args.positions, args.k / args.heads, args.heads};
  if (args.k == 0) return cudaSuccess;
  SharedRows left = shared_rows(a);  // whose partials are to be added up
  [[maybe_unused]] bool tiles = false, teams = false;
  if constexpr (requires { a.tile_ptr; }) {
    tiles = args.k == 1 && a.tiles > 0;
    teams = a.teams > 0;
    if (tiles) left = shared_rows_of_tiles(a);
  }
  const auto sum = [&](auto tag) -> int {
    using T = typename decltype(tag)::type;
    const auto run = [&](auto shape, const Grid& grid, unsigned blocks, int threads) {
      using S = decltype(shape);
      const auto kernel = weighted ? spmm_kernel<Format, true, S> : spmm_kernel<Format, false, S>;
      return launch_overlapped(kernel, blocks, threads, stream, a, args, grid);
    };
    if constexpr (requires { a.tile_ptr; }) {
      if (tiles) return launch_spmv<T>(a, args, stream);
    }
    if constexpr (requires(int64_t item) { bounds_of(a, item); }) {
      if (const auto error = try_short<T>(a, work, args, stream)) {
        if (teams) left = {};
        return *error;
      }
    }
    if constexpr (sizeof(T) < 8) {
      constexpr int64_t kVec = kFullVec<T>;
      const bool vectors = in_vectors<T>(args, work.width, kVec);
      const int lanes = feature_lanes(work, args.num_cols, 16);
      if (vectors && share_a_warp(work, work.width / kVec, 8)) {
        return launch_unrolled<T, kVec, 8, false>(work, 8, run);
      }
      // Two rows of 9 to 16 lanes; narrower ones that are too few for groups of 8 take a warp each.
      if (vectors && work.width / kVec > 8 && share_a_warp(work, work.width / kVec, 16)) {
        constexpr int kUnroll = kVec < 8 ? 8 : 4;
        const Division whole{static_cast<int>(work.width / kVec), 1, work.width};
        return launch_shape<Shape<T, kVec, 16, kUnroll>>(work, whole, run);
      }
      if (vectors) return launch_unrolled<T, kVec, kWarp, false>(work, lanes, run);
      // An element's number must fit 32 bits in a frame, and a row should fill a few words.
      const bool framed = (args.num_cols - 1) * args.ldx + args.k < (int64_t{1} << 32) - kWarp * kVec;
      if (framed && work.width >= 2 * kVec) return launch_unrolled<T, kVec, kWarp, true>(work, lanes, run);
    }
    if (share_a_warp(work, work.width, 8)) return launch_unrolled<T, 1, 8, false>(work, 8, run);
    return launch_unrolled<T, 1, kWarp, false>(work, kWarp, run);
  };
  if (work.items > 0) {
    const int error = visit_dtype(args.dtype, sum);
    if (error != cudaSuccess) return error;
  }
  return combine(left, args, stream);
}

template <typename Format>
int launch_sddmm(const Format& a, int64_t nnz, const SddmmArgs& args, void* stream) {
  const Work work{items(a), nnz, args.k / args.heads, args.heads};
  if (work.items == 0 || args.heads == 0) return cudaSuccess;
  return visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto launch = [&](auto shape) -> int {
      using S = decltype(shape);
      const int threads = block_threads(work.items * S::kRow);
      const int64_t blocks = ceil_div(work.items, threads / S::kRow);
      if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
      return launch_overlapped(sddmm_kernel<Format, S>, static_cast<unsigned>(blocks), threads, stream, a, args,
                               work.items);
    };
    if constexpr (sizeof(T) < 8) {
      constexpr int kVec = kFullVec<T>;
      const int64_t size = sizeof(T);
      const bool vectors =
          work.width % kVec == 0 && aligned(args.q, args.ldq * size, 16) && aligned(args.key, args.ldk * size, 16);
      const bool share = share_a_warp(work, 1, 8);
      if constexpr (requires { a.rowptr; }) {  // without padding
        const bool whole = vectors && work.heads == 1 && work.width > 0 && !a.slot.edge && !are_short(work);
        if (whole && work.width <= 2 * kVec) return launch(DotShape<T, kVec, kWarp, 2, true>{});
        if (whole && work.width <= 4 * kVec) return launch(DotShape<T, kVec, kWarp, 4, true>{});
        if (whole && work.width <= 8 * kVec) return launch(DotShape<T, kVec, kWarp, 8, true>{});
      }
      if (vectors && work.width <= 2 * kVec) {
        return share ? launch(DotShape<T, kVec, 8, 2>{}) : launch(DotShape<T, kVec, kWarp, 2>{});
      }
      if (vectors && work.width <= 4 * kVec) {
        return share ? launch(DotShape<T, kVec, 8, 4>{}) : launch(DotShape<T, kVec, kWarp, 4>{});
      }
      if (vectors) {
        return share ? launch(DotShape<T, kVec, 8, 8>{}) : launch(DotShape<T, kVec, kWarp, 8>{});
      }
    }
    return work.width <= 8 ? launch(DotShape<T, 1, kWarp, 4>{}) : launch(DotShape<T, 1, kWarp, 32>{});
  });
}

}  // namespace pyg_sparse::cuda
