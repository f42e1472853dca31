// How threads divide a product: a group of kRow lanes takes a work item, and inside it some lanes lie across the
// features of a slice of K while several neighbours are loaded side by side.
#pragma once

#include <cstdint>

#include "vec.cuh"

namespace pyg_sparse::cuda {

constexpr int kWarp = 32;
constexpr int kBlock = 256;  // most threads in a block

// What is fixed when a kernel is compiled: a lane moves kVec features in one load and has kUnroll loads in flight.
// With kFrame, rows of x may start anywhere, and loads are of the aligned words around them (frame.cuh).
template <typename T_, int kVec_, int kRow_, int kUnroll_, bool kFrame_ = false>
struct Shape {
  using T = T_;
  static constexpr int kVec = kVec_, kRow = kRow_, kUnroll = kUnroll_;
  static constexpr bool kFrame = kFrame_;
  static_assert(kRow <= kWarp && kWarp % kRow == 0, "a group is part of a warp");
};

// What a launch chooses. Blocks are ordered slice by slice, so that the slice of x in use stays in L2.
struct Grid {
  int64_t items;
  uint32_t blocks_per_slice;
  uint32_t slices_per_head;
  int64_t width;   // features of a head
  int64_t slice;   // features of a slice, which never spans two heads
  int lanes;       // lanes across the features of a slice
  int neighbours;  // entries side by side: as often as lanes fit into a group
  int batch;       // entries whose indices a group loads at once
  int reciprocal;  // lane / lanes == lane * reciprocal >> 10
};

constexpr int reciprocal_of(int lanes) { return (1024 + lanes - 1) / lanes; }
constexpr bool divides_as_expected() {
  for (int lanes = 1; lanes <= kWarp; ++lanes) {
    for (int lane = 0; lane < kWarp; ++lane) {
      if (lane * reciprocal_of(lanes) >> 10 != lane / lanes) return false;
    }
  }
  return true;
}
static_assert(divides_as_expected());

// The place of this thread in it.
template <typename S>
struct Place {
  int lane;  // in the group
  int lanes, neighbours, batch;
  int feature;    // among the lanes across features
  int neighbour;  // neighbours or more: this lane is left over and has no features
  unsigned mask;
  int head;
  int64_t item;
  int64_t begin, end;  // features of the slice
  int64_t k;           // this lane's first feature, end if it has none

  __device__ explicit Place(const Grid& grid) {
    const uint32_t slice = blockIdx.x / grid.blocks_per_slice;
    const uint32_t block = blockIdx.x - slice * grid.blocks_per_slice;
    const int in_warp = threadIdx.x % kWarp;
    lane = in_warp % S::kRow;
    lanes = grid.lanes;
    neighbours = grid.neighbours;
    batch = grid.batch;
    neighbour = lane * grid.reciprocal >> 10;
    feature = lane - neighbour * lanes;
    mask = S::kRow == kWarp ? ~0u : ((1u << (S::kRow % kWarp)) - 1u) << (in_warp - lane);
    item = static_cast<int64_t>(block) * (blockDim.x / S::kRow) + threadIdx.x / S::kRow;
    head = static_cast<int>(slice / grid.slices_per_head);
    begin = (slice - static_cast<uint32_t>(head) * grid.slices_per_head) * grid.slice;
    end = head * grid.width + (begin + grid.slice < grid.width ? begin + grid.slice : grid.width);
    begin += head * grid.width;
    const int64_t first = begin + feature * S::kVec;
    k = neighbour < neighbours && first < end ? first : end;
  }

  __device__ bool has_features() const { return k < end; }
  // A lane without features of its own loads what another lane loads as well: that costs nothing, and no load of a full
  // batch needs a condition.
  __device__ int64_t loaded_k() const { return has_features() ? k : begin; }
  __device__ int loaded_neighbour() const { return neighbour < neighbours ? neighbour : 0; }
};

}  // namespace pyg_sparse::cuda
