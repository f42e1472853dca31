// The sums of short runs: a group of a warp's lanes takes item after item, and loads the bounds of the one after next
// and the columns of the next while it sums. A row of a few entries would otherwise wait for one after the other.
#pragma once

#include "epilogue.cuh"
#include "overlap.cuh"
#include "place.cuh"
#include "row_sum.cuh"
#include "run.cuh"

namespace pyg_sparse::cuda {

// A lane moves kVec features in one load, kParts times for an entry, and has the loads of kUnroll entries in flight.
template <typename T_, int kVec_, int kUnroll_, int kParts_>
struct ShortShape {
  using T = T_;
  static constexpr int kVec = kVec_, kUnroll = kUnroll_, kParts = kParts_;
};

// How a warp divides into groups of lanes * neighbours lanes, one for an item each.
struct Groups {
  int neighbours, count;
  int reciprocal;  // of lanes * neighbours, as in Grid
};

// A slice's first blocks take the parts of long rows, with a warp each; or, with teams, a long row each. The groups of
// the other blocks take consecutive items in every round.
struct ShortGrid {
  uint32_t items, parts;
  bool teams;
  uint32_t part_blocks, blocks_per_slice;
  uint32_t slices_per_head;
  int width, slice;  // features of a head and of a slice
  int lanes, lanes_reciprocal;
  Groups of_part, of_row;
};

template <bool kWeighted, typename S, typename Format>
class ShortSum {
 public:
  using T = typename S::T;
  using A = Accumulate<T>;

  __device__ ShortSum(const Format& a, const SpmmArgs& args, const ShortGrid& grid) : a_(a), args_(args), grid_(grid) {
    const uint32_t slice = blockIdx.x / grid.blocks_per_slice;
    const uint32_t block = blockIdx.x - slice * grid.blocks_per_slice;
    const bool part = block < grid.part_blocks;
    const Groups groups = part ? grid.of_part : grid.of_row;
    neighbours_ = groups.neighbours;
    const int lane = threadIdx.x % kWarp;
    const int group = lane * groups.reciprocal >> 10;
    const int in_group = lane - group * grid.lanes * neighbours_;
    neighbour_ = in_group * grid.lanes_reciprocal >> 10;
    const uint32_t warps = blockDim.x / kWarp;
    const uint32_t warp = (part ? block : block - grid.part_blocks) * warps + threadIdx.x / kWarp;
    step_ = (part ? grid.part_blocks : grid.blocks_per_slice - grid.part_blocks) * warps * groups.count;
    items_ = part ? grid.parts : grid.items;
    item_ = group < groups.count ? (part ? 0 : grid.parts) + warp * groups.count + group : items_;
    head_ = static_cast<int>(slice / grid.slices_per_head);
    const int begin = static_cast<int>(slice - static_cast<uint32_t>(head_) * grid.slices_per_head) * grid.slice;
    const int first = begin + (in_group - neighbour_ * grid.lanes) * S::kVec;
    const int left = min(begin + grid.slice, grid.width) - first;
    parts_ = left <= 0 ? 0 : (left - 1) / (grid.lanes * S::kVec) + 1;
    k_ = head_ * grid.width + (parts_ > 0 ? first : begin);
    x_ = static_cast<const char*>(args.x) + k_ * int64_t{sizeof(T)};
    row_bytes_ = static_cast<uint32_t>(args.ldx * sizeof(T));
    asm("" : "+l"(x_));  // as in RowSum
  }

  // staged: room for a block's totals, with teams.
  __device__ void run(A* staged) {
    if constexpr (requires { a_.team_ptr; }) {
      const uint32_t block = blockIdx.x % grid_.blocks_per_slice;
      if (grid_.teams && block < grid_.part_blocks) return run_team(block, staged);
    }
    Bounds now = bounds(item_), next = bounds(item_ + step_);
    if (kWeighted) wait_for_stream(x_);
    load_entries(now.begin, now.end);
    if (!kWeighted) wait_for_stream(x_);
    while (__any_sync(~0u, item_ < items_)) {
      const bool there = item_ < items_;
      const Target target = there ? target_of(a_, item_) : Target{};
      const Bounds after = bounds(item_ + 2 * step_);
      A sum[S::kParts][S::kVec] = {};
      add_run(sum, now, next);
      sum_neighbours(sum);
      if (there && neighbour_ == 0) write(sum, target);
      now = next;
      next = after;
      item_ = there ? item_ + step_ : item_;
    }
  }

 private:
  // Every warp of the block sums a share of one long row.
  __device__ void run_team(uint32_t team, A* staged) {
    const int warps = blockDim.x / kWarp, warp = threadIdx.x / kWarp;
    const bool works = threadIdx.x % kWarp < grid_.lanes * neighbours_;  // this lane is not left over
    const Bounds row{a_.team_ptr[team], a_.team_ptr[team + 1]};
    const Target target{a_.row[team], -1};
    const int64_t length = row.end - row.begin;
    Bounds share{row.begin + length * warp / warps, row.begin + length * (warp + 1) / warps};
    if (!works) share.end = share.begin;
    if (kWeighted) wait_for_stream(x_);
    load_entries(share.begin, share.end);
    if (!kWeighted) wait_for_stream(x_);
    A sum[S::kParts][S::kVec] = {};
    add_run(sum, share, {0, 0});
    sum_neighbours(sum);
    const auto at = [&](int of, int j, int v) {
      return ((of * S::kParts + j) * S::kVec + v) * kWarp + threadIdx.x % kWarp;
    };
#pragma unroll
    for (int j = 0; j < S::kParts; ++j) {
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) staged[at(warp, j, v)] = sum[j][v];
    }
    __syncthreads();
    if (warp > 0 || !works || neighbour_ > 0) return;
    for (int other = 1; other < warps; ++other) {
#pragma unroll
      for (int j = 0; j < S::kParts; ++j) {
#pragma unroll
        for (int v = 0; v < S::kVec; ++v) sum[j][v] += staged[at(other, j, v)];
      }
    }
    write(sum, target);
  }

  // Adds the entries of a run, of which the first are loaded, and loads the first of the next.
  __device__ void add_run(A (&sum)[S::kParts][S::kVec], Bounds now, Bounds next) {
    for (int64_t p = now.begin;;) {
      p += S::kUnroll * neighbours_;
      const bool more = p < now.end;
      add(sum, more ? p : next.begin, more ? now.end : next.end);
      if (!more) break;
    }
  }

  __device__ Bounds bounds(uint32_t item) const { return item < items_ ? bounds_of(a_, item) : Bounds{0, 0}; }

  // This neighbour's share of the next kUnroll * neighbours entries.
  __device__ void load_entries(int64_t begin, int64_t end) {
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      const int64_t p = begin + u * neighbours_ + neighbour_;
      col_[u] = p < end ? a_.col[p] : -1;
      if constexpr (kWeighted) {
        // A value is loaded for padding, too: to know better, the lane would have to wait for the column.
        weight_[u] = 1;
        if (args_.value && p < end) {
          weight_[u] = widen(static_cast<const T*>(args_.value)[head_ * args_.positions + p]);
        }
        if (args_.col_scale && col_[u] >= 0) weight_[u] *= static_cast<const A*>(args_.col_scale)[col_[u]];
      }
    }
  }

  // Adds the entries at hand; while their features are on the way, loads the entries begin .. end.
  __device__ void add(A (&sum)[S::kParts][S::kVec], int64_t begin, int64_t end) {
    Vec<T, S::kVec> value[S::kUnroll][S::kParts];
    A weight[S::kUnroll];
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      const char* source = x_ + static_cast<uint64_t>(static_cast<uint32_t>(col_[u])) * row_bytes_;
#pragma unroll
      for (int j = 0; j < S::kParts; ++j) {
        const T* part = reinterpret_cast<const T*>(source) + (j < parts_ ? feature_of(j) : 0);
        value[u][j] = col_[u] >= 0 ? load<T, S::kVec>(part) : Vec<T, S::kVec>{};
      }
      weight[u] = kWeighted ? (col_[u] >= 0 ? weight_[u] : A(0)) : A(1);  // padding adds 0 * 0
    }
    load_entries(begin, end);
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
#pragma unroll
      for (int j = 0; j < S::kParts; ++j) {
#pragma unroll
        for (int v = 0; v < S::kVec; ++v) sum[j][v] += kWeighted ? weight[u] * value[u][j][v] : value[u][j][v];
      }
    }
  }

  // Adds up the neighbours, into the lanes of the first.
  __device__ void sum_neighbours(A (&sum)[S::kParts][S::kVec]) const {
    for (int half = neighbours_ / 2; half > 0; half /= 2) {
#pragma unroll
      for (int j = 0; j < S::kParts; ++j) {
#pragma unroll
        for (int v = 0; v < S::kVec; ++v) sum[j][v] += __shfl_down_sync(~0u, sum[j][v], half * grid_.lanes);
      }
    }
  }

  __device__ void write(A (&sum)[S::kParts][S::kVec], Target target) const {
#pragma unroll
    for (int j = 0; j < S::kParts; ++j) {
      if (j < parts_) write_sums<T, S::kVec, true>(args_, target, k_ + feature_of(j), 0, sum[j]);
    }
  }

  // Where this lane's part begins, from its first feature.
  __device__ int feature_of(int part) const { return part == 0 ? 0 : part * grid_.lanes * S::kVec; }

  const Format& a_;
  const SpmmArgs& args_;
  const ShortGrid& grid_;
  int neighbours_, neighbour_, head_;
  uint32_t items_, item_, step_;
  int k_;          // this lane's first feature, or one that another lane has
  int parts_;      // that this lane has
  const char* x_;  // that feature in row 0
  uint32_t row_bytes_;
  int32_t col_[S::kUnroll];
  A weight_[kWeighted ? S::kUnroll : 1];
};

}  // namespace pyg_sparse::cuda
