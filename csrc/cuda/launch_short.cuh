// Launches the kernel for short runs, short_sum.cuh.
#pragma once

#include <optional>

#include "division.cuh"
#include "overlap.cuh"
#include "short_sum.cuh"

namespace pyg_sparse::cuda {

// Blocks of short_kernel that fit a multiprocessor without a spill.
template <bool kWeighted, typename S>
constexpr int short_blocks() {
  constexpr bool kDeep = S::kUnroll == 8;
  if (sizeof(typename S::T) == 8) return kDeep ? 2 : 3;
  if (S::kVec == 1) return kWeighted ? 3 : kDeep ? 4 : 5;
  if (kWeighted) return kDeep ? 2 : 3;
  return kDeep ? 3 : S::kVec == 8 || S::kParts == 2 ? 4 : 5;
}

template <typename Format, bool kWeighted, typename S>
__global__ __launch_bounds__(kBlock, (kBudgeted ? short_blocks<kWeighted, S>()
                                                : 1)) void short_kernel(Format a, SpmmArgs args, ShortGrid grid) {
  extern __shared__ __align__(8) char staged[];
  ShortSum<kWeighted, S, Format>(a, args, grid).run(reinterpret_cast<Accumulate<typename S::T>*>(staged));
}

// As divide, where a lane takes several parts of a slice.
template <typename T, int kVec, int kParts>
Division divide_short(int64_t width) {
  if (kParts == 1) return divide<Shape<T, kVec, kWarp, 1>>(width, kWarp);
  constexpr int64_t kLane = kVec * kParts;
  const int64_t slices = ceil_div(width, kWarp * kLane), slice = ceil_div(ceil_div(width, slices), kVec) * kVec;
  return {static_cast<int>(ceil_div(slice, kLane)), slices, slice};
}

// Formats whose item is one run of entries, and short on average.
template <typename T, int kVec, int kParts, typename Format>
int launch_short(const Format& a, const Work& work, const SpmmArgs& args, void* stream) {
  const Division division = divide_short<T, kVec, kParts>(work.width);
  const int64_t slices = division.slices * work.heads, mean = ceil_div(work.nnz, work.items);
  const int64_t processors = attribute(cudaDevAttrMultiProcessorCount);
  const int64_t parts = parts_of(a), teams = teams_of(a);
  const auto groups = [&](int neighbours) {
    const int lanes = division.lanes * neighbours;
    return Groups{neighbours, kWarp / lanes, reciprocal_of(lanes)};
  };
  const auto warps = [&](int neighbours) { return ceil_div(work.items - parts, groups(neighbours).count) * slices; };
  // Neighbours make the path of a row shorter, but have to be added up: they pay where lanes would be idle, and where
  // a row's features fill less than a sector.
  constexpr int kNarrow = 4, kEntries = 8;
  int neighbours = 1;
  while (2 * neighbours * division.lanes <= kWarp &&
         ((2 * neighbours * division.lanes <= kNarrow && mean > kEntries * neighbours) ||
          (mean > neighbours && warps(2 * neighbours) <= kWarpsToFill * processors))) {
    neighbours *= 2;
  }
  int most_neighbours = 1;
  while (2 * most_neighbours * division.lanes <= kWarp) most_neighbours *= 2;
  const auto launch = [&]<bool kWeighted, typename S>(std::bool_constant<kWeighted>, S) -> int {
    // A few times as many blocks as the device holds at a time: their groups go on to further items. More of them where
    // rows are longer, since these differ more.
    constexpr int64_t kFewEntries = 16;
    const int64_t resident = processors * short_blocks<kWeighted, S>() * (kBlock / kWarp);
    const int64_t needed = std::min(warps(neighbours) / slices, resident * (mean < kFewEntries ? 2 : 8));
    const int threads = teams > 0 ? kBlock : block_threads((needed + parts) * slices * kWarp);
    const int per_block = threads / kWarp;
    const int64_t part_blocks = teams > 0 ? teams : ceil_div(parts, per_block);
    const int64_t blocks_per_slice = part_blocks + ceil_div(needed, per_block), blocks = blocks_per_slice * slices;
    if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
    const ShortGrid grid{.items = static_cast<uint32_t>(work.items),
                         .parts = static_cast<uint32_t>(parts),
                         .teams = teams > 0,
                         .part_blocks = static_cast<uint32_t>(part_blocks),
                         .blocks_per_slice = static_cast<uint32_t>(blocks_per_slice),
                         .slices_per_head = static_cast<uint32_t>(division.slices),
                         .width = static_cast<int>(work.width),
                         .slice = static_cast<int>(division.slice),
                         .lanes = division.lanes,
                         .lanes_reciprocal = reciprocal_of(division.lanes),
                         .of_part = groups(most_neighbours),
                         .of_row = groups(neighbours)};
    static_assert(sizeof(Accumulate<T>) * kBlock * kVec * kParts <= 48 << 10);
    const size_t staged = teams > 0 ? sizeof(Accumulate<T>) * threads * kVec * kParts : 0;
    return launch_staged(short_kernel<Format, kWeighted, S>, static_cast<unsigned>(blocks), threads, staged, stream, a,
                         args, grid);
  };
  constexpr int kMost = kVec < 8 && kParts == 1 ? 8 : 4;
  // Where a warp has one row, further warps hide more than further loads.
  const bool deep = mean > (division.lanes > 16 ? 8 : 4) * neighbours;
  const auto launch_with = [&](auto weighted) {
    return deep ? launch(weighted, ShortShape<T, kVec, kMost, kParts>{})
                : launch(weighted, ShortShape<T, kVec, 4, kParts>{});
  };
  return args.value || args.col_scale ? launch_with(std::true_type{}) : launch_with(std::false_type{});
}

// The error code, if the runs are short enough for this kernel. Rows that vectors fit have another one for runs of some
// length, which shares their indices among lanes; the others have frames (frame.cuh), which pay for long runs only.
template <typename T, typename Format>
std::optional<int> try_short(const Format& a, const Work& work, const SpmmArgs& args, void* stream) {
  constexpr int64_t kFull = sizeof(T) < 8 ? kFullVec<T> : 1;
  constexpr int64_t kShort = 32, kMedium = 64, kNarrowBytes = 192;
  const bool vectors = in_vectors<T>(args, work.width, kFull);
  const bool narrow = work.width * static_cast<int64_t>(sizeof(T)) <= kNarrowBytes;
  const bool in_frames = sizeof(T) == 4 && work.width >= 2 * kFull;
  const bool to_medium = vectors ? narrow : !in_frames;
  const int64_t longest = to_medium ? kMedium : kShort;
  if (work.nnz >= longest * work.items || work.items >= int64_t{1} << 31) return {};
  if (vectors) return launch_short<T, kFull, 1>(a, work, args, stream);
  if constexpr (sizeof(T) < 8) {
    if (in_vectors<T>(args, work.width, 2)) return launch_short<T, 2, 2>(a, work, args, stream);
  }
  if (work.width > kWarp) return launch_short<T, 1, 2>(a, work, args, stream);
  return launch_short<T, 1, 1>(a, work, args, stream);
}

}  // namespace pyg_sparse::cuda
