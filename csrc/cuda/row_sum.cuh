// How one work item is summed: a group of kRow lanes walks the item's entries, kFeat lanes across the features of a
// slice of K and kRow / kFeat neighbours side by side. Shared by every format.
#pragma once

#include <cstdint>

#include "pyg_sparse/operands.h"
#include "vec.cuh"

namespace pyg_sparse::cuda {

constexpr int kWarp = 32;
constexpr int kBlock = 256;

__device__ inline int64_t edge_of(const SlotMap& slot, int64_t position) {
  return slot.wide ? static_cast<const int64_t*>(slot.edge)[position]
                   : static_cast<const int32_t*>(slot.edge)[position];
}

template <typename T, int kVec_, int kFeat_, int kRow_>
struct Shape {
  static constexpr int kVec = kVec_, kFeat = kFeat_, kRow = kRow_;
  static constexpr int kNeighbours = kRow / kFeat;
  static constexpr int kSlice = kVec * kFeat;         // features of K that a group covers
  static constexpr int kGroups = kBlock / kRow;       // groups in a block
  static constexpr int kUnroll = kFeat < 8 ? kFeat : 8;  // loads in flight per lane
  static_assert(kRow <= kWarp && kRow % kFeat == 0, "a group is part of a warp and holds whole feature rows");
  static_assert(sizeof(T) * kVec <= 16);
};

// The place of this thread: blocks are ordered slice by slice, so that the slice of x in use stays in L2.
template <typename S>
struct Place {
  int lane, feature, neighbour;  // in the group; of the slice; among the neighbours
  unsigned mask;
  int64_t item, k;
  bool has_features;

  __device__ Place(int64_t blocks_per_slice, int64_t features) {
    const int64_t slice = blockIdx.x / blocks_per_slice;
    const int64_t block = blockIdx.x - slice * blocks_per_slice;
    const int in_warp = threadIdx.x % kWarp;
    lane = in_warp % S::kRow;
    feature = lane % S::kFeat;
    neighbour = lane / S::kFeat;
    mask = S::kRow == kWarp ? ~0u : ((1u << (S::kRow % kWarp)) - 1u) << (in_warp - lane);
    item = block * S::kGroups + threadIdx.x / S::kRow;
    k = slice * S::kSlice + feature * S::kVec;
    has_features = k < features;
  }
};

// Up to kRow entries, one in each lane's registers. col is -1 past the end and in padding.
template <typename T>
struct Entry {
  int32_t col;
  Accumulate<T> weight;
};

template <typename T, bool kWeighted>
__device__ Entry<T> load_entry(const SpmmArgs& args, const int32_t* col, const SlotMap& slot, int64_t position,
                               int64_t end) {
  Entry<T> entry{-1, Accumulate<T>(0)};
  if (position < end) entry.col = col[position];
  if constexpr (kWeighted) {
    if (entry.col >= 0) {
      entry.weight = args.value ? widen(static_cast<const T*>(args.value)[edge_of(slot, position)]) : Accumulate<T>(1);
      if (args.col_scale) entry.weight *= static_cast<const Accumulate<T>*>(args.col_scale)[entry.col];
    }
  }
  return entry;
}

// Adds the entries held by lanes first .. last - 1 of the group.
template <typename T, bool kWeighted, typename S>
__device__ void add_entries(const SpmmArgs& args, const Place<S>& place, const Entry<T>& entry, int first, int last,
                            Accumulate<T> (&sum)[S::kVec]) {
  const T* x = static_cast<const T*>(args.x) + place.k;
  for (int j = first; j < last; j += S::kUnroll * S::kNeighbours) {
    Vec<T, S::kVec> value[S::kUnroll] = {};
    Accumulate<T> weight[S::kUnroll];
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      const int from = j + u * S::kNeighbours + place.neighbour;
      const int32_t col = __shfl_sync(place.mask, entry.col, from, S::kRow);
      if constexpr (kWeighted) weight[u] = __shfl_sync(place.mask, entry.weight, from, S::kRow);
      const bool valid = from < last && col >= 0 && place.has_features;
      if (valid) value[u] = load<T, S::kVec>(x + col * args.ldx);
      // An invalid entry adds 0 * 0: its weight may be another run's NaN.
      if (kWeighted && !valid) weight[u] = 0;
    }
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) {
        const Accumulate<T> feature = widen(value[u].element[v]);
        sum[v] += kWeighted ? weight[u] * feature : feature;
      }
    }
  }
}

template <typename T, bool kWeighted, typename S>
__device__ void sum_entries(const SpmmArgs& args, const Place<S>& place, const int32_t* col, const SlotMap& slot,
                            int64_t begin, int64_t end, Accumulate<T> (&sum)[S::kVec]) {
  for (int64_t base = begin; base < end; base += S::kRow) {
    const Entry<T> entry = load_entry<T, kWeighted>(args, col, slot, base + place.lane, end);
    const int64_t left = end - base;
    add_entries<T, kWeighted>(args, place, entry, 0, left < S::kRow ? static_cast<int>(left) : S::kRow, sum);
  }
}

// Adds up the neighbours of a group and writes the slice: to a partial, or to out with the epilogue.
template <typename T, typename S>
__device__ void finish(const SpmmArgs& args, const Place<S>& place, int64_t row, int64_t partial,
                       Accumulate<T> (&sum)[S::kVec]) {
  using A = Accumulate<T>;
#pragma unroll
  for (int offset = S::kFeat; offset < S::kRow; offset *= 2) {
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) sum[v] += __shfl_xor_sync(place.mask, sum[v], offset, S::kRow);
  }
  if (place.neighbour != 0 || !place.has_features) return;
  if (partial >= 0) {
    A* to = static_cast<A*>(args.partial) + partial * args.k + place.k;
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) to[v] = sum[v];
    return;
  }
  const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
  Vec<T, S::kVec> result;
  if (args.self_scale) {
    const A self_scale = static_cast<const A*>(args.self_scale)[row];
    const auto self = load<T, S::kVec>(static_cast<const T*>(args.x) + row * args.ldx + place.k);
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) {
      result.element[v] = narrow<T>(row_scale * sum[v] + self_scale * widen(self.element[v]));
    }
  } else {
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) result.element[v] = narrow<T>(row_scale * sum[v]);
  }
  store(static_cast<T*>(args.out) + row * args.k + place.k, result);
}

// The dot products of a run of entries, kFeat lanes to each; row_of(position) is an entry's row.
template <typename T, typename S, typename RowOf>
__device__ void dot_entries(const SddmmArgs& args, const Place<S>& place, const int32_t* col, const SlotMap& slot,
                            int64_t begin, int64_t end, const RowOf& row_of) {
  using A = Accumulate<T>;
  for (int64_t base = begin; base < end; base += S::kNeighbours) {
    const int64_t position = base + place.neighbour;
    const int64_t c = position < end ? col[position] : -1;
    const int64_t row = c >= 0 ? row_of(position) : 0;
    A dot = 0;
    if (c >= 0) {
      const T* q = static_cast<const T*>(args.q) + row * args.ldq;
      const T* key = static_cast<const T*>(args.key) + c * args.ldk;
#pragma unroll 4
      for (int64_t k = place.feature * S::kVec; k < args.k; k += S::kSlice) {
        const auto left = load<T, S::kVec>(q + k), right = load<T, S::kVec>(key + k);
#pragma unroll
        for (int v = 0; v < S::kVec; ++v) dot += widen(left.element[v]) * widen(right.element[v]);
      }
    }
#pragma unroll
    for (int offset = 1; offset < S::kFeat; offset *= 2) dot += __shfl_xor_sync(place.mask, dot, offset, S::kRow);
    if (c >= 0 && place.feature == 0) {
      if (args.row_scale) dot *= static_cast<const A*>(args.row_scale)[row];
      if (args.col_scale) dot *= static_cast<const A*>(args.col_scale)[c];
      static_cast<T*>(args.out)[edge_of(slot, position)] = narrow<T>(dot);
    }
  }
}

}  // namespace pyg_sparse::cuda
