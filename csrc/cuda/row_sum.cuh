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

// How a group's lanes divide its work. With kVector a lane's kVec features are contiguous and move in one load;
// without, they lie kFeat apart, so that the lanes' scalar loads are neighbours: the way for widths and strides that no
// vector load fits.
template <typename T, bool kVector_, int kVec_, int kFeat_, int kRow_>
struct Shape {
  static constexpr bool kVector = kVector_;
  static constexpr int kVec = kVec_, kFeat = kFeat_, kRow = kRow_;
  static constexpr int kNeighbours = kRow / kFeat;
  static constexpr int kSlice = kVec * kFeat;            // most features of K that a group covers
  static constexpr int kGroups = kBlock / kRow;          // groups in a block
  static constexpr int kUnroll = kFeat < 8 ? kFeat : 8;  // entries in flight per lane
  static_assert(kRow <= kWarp && kRow % kFeat == 0, "a group is part of a warp and holds whole feature rows");
  static_assert(!kVector || sizeof(T) * kVec <= 16);
};

// The grid: blocks are ordered slice by slice, so that the slice of x in use stays in L2.
struct Grid {
  int64_t items;
  int64_t blocks_per_slice;
  int64_t slice;  // features in a slice, at most kSlice
};

// The place of this thread in it.
template <typename S>
struct Place {
  int lane, feature, neighbour;  // in the group; of the slice; among the neighbours
  unsigned mask;
  int64_t item, k, end;  // features k(0), k(1), ... below end

  __device__ Place(const Grid& grid, int64_t features) {
    const int64_t slice = blockIdx.x / grid.blocks_per_slice;
    const int64_t block = blockIdx.x - slice * grid.blocks_per_slice;
    const int in_warp = threadIdx.x % kWarp;
    lane = in_warp % S::kRow;
    feature = lane % S::kFeat;
    neighbour = lane / S::kFeat;
    mask = S::kRow == kWarp ? ~0u : ((1u << (S::kRow % kWarp)) - 1u) << (in_warp - lane);
    item = block * S::kGroups + threadIdx.x / S::kRow;
    k = slice * grid.slice + feature * (S::kVector ? S::kVec : 1);
    end = slice * grid.slice + grid.slice < features ? slice * grid.slice + grid.slice : features;
  }

  // Offset of this lane's feature v from its first, and whether it exists.
  __device__ static constexpr int offset(int v) { return S::kVector ? v : v * S::kFeat; }
  __device__ bool has(int v) const { return k + (S::kVector ? 0 : offset(v)) < end; }
};

// This lane's features of one row of x; zero where it has none.
template <typename T, typename S>
struct Features {
  static constexpr int kLoads = S::kVector ? 1 : S::kVec;
  Vec<T, S::kVec / kLoads> part[kLoads] = {};

  __device__ void load_from(const Place<S>& place, const T* from) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
      if (place.has(i)) part[i] = load<T, S::kVec / kLoads>(from + (S::kVector ? 0 : place.offset(i)));
    }
  }
  __device__ Accumulate<T> operator[](int v) const { return S::kVector ? part[0][v] : part[S::kVector ? 0 : v][0]; }
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
    Features<T, S> value[S::kUnroll];
    Accumulate<T> weight[S::kUnroll];
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      const int from = j + u * S::kNeighbours + place.neighbour;
      const int32_t col = __shfl_sync(place.mask, entry.col, from, S::kRow);
      if constexpr (kWeighted) weight[u] = __shfl_sync(place.mask, entry.weight, from, S::kRow);
      const bool valid = from < last && col >= 0;
      if (valid) value[u].load_from(place, x + col * args.ldx);
      // An invalid entry adds 0 * 0: its weight may be another run's NaN.
      if (kWeighted && !valid) weight[u] = 0;
    }
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) {
        sum[v] += kWeighted ? weight[u] * value[u][v] : value[u][v];
      }
    }
  }
}

template <typename T, bool kWeighted, typename S>
__device__ void sum_entries(const SpmmArgs& args, const Place<S>& place, const int32_t* col, const SlotMap& slot,
                            int64_t begin, int64_t end, Accumulate<T> (&sum)[S::kVec]) {
  Entry<T> next = load_entry<T, kWeighted>(args, col, slot, begin + place.lane, end);
  for (int64_t base = begin; base < end; base += S::kRow) {
    const Entry<T> entry = next;  // the following entries load while these are summed
    next = load_entry<T, kWeighted>(args, col, slot, base + S::kRow + place.lane, end);
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
  if (place.neighbour != 0) return;
  if (partial >= 0) {
    A* to = static_cast<A*>(args.partial) + partial * args.k + place.k;
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) {
      if (place.has(v)) to[place.offset(v)] = sum[v];
    }
    return;
  }
  const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
  Features<T, S> self;
  A self_scale = 0;
  if (args.self_scale) {
    self_scale = static_cast<const A*>(args.self_scale)[row];
    self.load_from(place, static_cast<const T*>(args.self) + row * args.ldself + place.k);
  }
  T* to = static_cast<T*>(args.out) + row * args.k + place.k;
#pragma unroll
  for (int v = 0; v < S::kVec; ++v) sum[v] = row_scale * sum[v] + (args.self_scale ? self_scale * self[v] : A(0));
  if constexpr (S::kVector) {
    if (place.has(0)) store<T, S::kVec>(to, sum);
  } else {
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) {
      if (place.has(v)) to[place.offset(v)] = narrow<T>(sum[v]);
    }
  }
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
      constexpr int kLoad = S::kVector ? S::kVec : 1;
#pragma unroll 4
      for (int64_t k = place.feature * kLoad; k < args.k; k += S::kFeat * kLoad) {
        const auto left = load<T, kLoad>(q + k), right = load<T, kLoad>(key + k);
#pragma unroll
        for (int v = 0; v < kLoad; ++v) dot += left[v] * right[v];
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
