// The dot products of a run of entries. Shared by every format.
#pragma once

#include "row_sum.cuh"

namespace pyg_sparse::cuda {

// kLanes lanes lie across the features of a pair of rows, as often as they fit into the kRow lanes of a group, and
// each lane keeps the partial dot products of kUnroll entries, which are then summed over the lanes together.
// With kWhole, a row's features fit the kLanes lanes, and there is one head: dot_row.
template <typename T_, int kVec_, int kRow_, int kLanes_, bool kWhole_ = false>
struct DotShape {
  using T = T_;
  static constexpr int kVec = kVec_, kRow = kRow_, kLanes = kLanes_;
  static constexpr bool kWhole = kWhole_;
  // 8 of 8 features each would spill, but in dot_row.
  static constexpr int kMost = kVec < 8 || kWhole ? 8 : 4;
  static constexpr int kUnroll = kLanes < kMost ? kLanes : kMost;
  static constexpr int kNeighbours = kRow / kLanes;
  static constexpr int kBatch = kUnroll * kNeighbours;
};

// Sums kCount values over kLanes neighbouring lanes; lane i receives the total of value i % kCount.
// Halving the values at every step takes kCount - 1 shuffles, not kCount times log2(kLanes).
template <int kLanes, int kCount, typename A>
__device__ A sum_across(unsigned mask, int lane, A (&value)[kCount]) {
#pragma unroll
  for (int half = kCount / 2; half > 0; half /= 2) {
    const bool upper = lane & half;
#pragma unroll
    for (int i = 0; i < half; ++i) {
      const A other = __shfl_xor_sync(mask, upper ? value[i] : value[i + half], half);
      value[i] = (upper ? value[i + half] : value[i]) + other;
    }
  }
#pragma unroll
  for (int offset = kCount; offset < kLanes; offset *= 2) value[0] += __shfl_xor_sync(mask, value[0], offset);
  return value[0];
}

// The dot products of one row without padding, written in stored order, if its features fit kLanes lanes. The features
// of the next entries are on their way while those at hand are summed over the lanes.
template <typename S>
__device__ void dot_row(const SddmmArgs& args, const int32_t* col, int64_t begin, int64_t end, int64_t row) {
  static_assert(S::kRow == kWarp && S::kBatch == kWarp, "a lane receives one of a batch's results");
  using T = typename S::T;
  using A = Accumulate<T>;
  const int lane = threadIdx.x % kWarp, neighbour = lane / S::kLanes, feature = lane % S::kLanes;
  const int k = feature * S::kVec;
  const bool has_features = k < args.k;
  const int first = has_features ? k : 0;  // the others' results are not used
  const auto* key = reinterpret_cast<const char*>(static_cast<const T*>(args.key) + first);
  const auto row_bytes = static_cast<uint32_t>(args.ldk * sizeof(T));
  asm("" : "+l"(key));  // as in RowSum
  const Vec<T, S::kVec> one = load<T, S::kVec>(static_cast<const T*>(args.q) + row * args.ldq + first);
  const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
  int64_t at = begin + lane;
  int left = static_cast<int>(end - begin) - lane;
  int32_t own = left > 0 ? load_once(col + at) : 0;
  Vec<T, S::kVec> other[S::kUnroll];
  const auto load_rows = [&] {
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      // In place of an entry that is not there, another row is loaded, and nothing is made of it.
      const int32_t c = __shfl_sync(~0u, own, u * S::kNeighbours + neighbour);
      const char* source = key + static_cast<uint64_t>(static_cast<uint32_t>(c)) * row_bytes;
      other[u] = load<T, S::kVec>(reinterpret_cast<const T*>(source));
    }
  };
  // From this lane's entry to the one whose total it receives.
  const int shift = (feature % S::kUnroll) * S::kNeighbours + neighbour - lane;
  load_rows();
  int32_t next = left > kWarp ? load_once(col + at + kWarp) : 0;
  for (; left + lane > 0; left -= kWarp, at += kWarp) {
    A dot[S::kUnroll] = {};
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) dot[u] += one[v] * other[u][v];
      if (!has_features) dot[u] = 0;
    }
    own = next;
    load_rows();
    next = left > 2 * kWarp ? load_once(col + at + 2 * kWarp) : 0;
    A total = row_scale * sum_across<S::kLanes>(~0u, lane, dot);
    if (left <= shift) continue;
    if (args.col_scale) total *= static_cast<const A*>(args.col_scale)[col[at + shift]];
    static_cast<T*>(args.out)[at + shift] = narrow<T>(total);
  }
}

// RowOf: row_of(position) is an entry's row. kOneRow: they all have the same.
template <typename S, bool kOneRow, typename RowOf>
__device__ void dot_entries(const SddmmArgs& args, const int32_t* col, const SlotMap& slot, int64_t begin, int64_t end,
                            const RowOf& row_of) {
  using T = typename S::T;
  using A = Accumulate<T>;
  const int in_warp = threadIdx.x % kWarp, lane = in_warp % S::kRow;
  const int neighbour = lane / S::kLanes, feature = lane % S::kLanes;
  const unsigned mask = S::kRow == kWarp ? ~0u : ((1u << (S::kRow % kWarp)) - 1u) << (in_warp - lane);
  const int64_t width = args.k / args.heads;
  const auto* q = static_cast<const T*>(args.q);
  const auto* key = static_cast<const T*>(args.key);
  const T* row = kOneRow && begin < end ? q + row_of(begin) * args.ldq : q;
  const auto load_col = [&](int64_t base) {
    return lane < S::kBatch && base + lane < end ? load_once(col + base + lane) : -1;
  };

  int32_t next = load_col(begin);
  for (int64_t base = begin; base < end; base += S::kBatch) {
    const int32_t own_col = next;  // the following entries load while these are summed
    next = load_col(base + S::kBatch);
    // Of an entry that is not there, the rows 0 are loaded, and nothing is made of them.
    const T* left[kOneRow ? 1 : S::kUnroll];
    const T* right[S::kUnroll];
    left[0] = row;
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      const int from = u * S::kNeighbours + neighbour;
      const int32_t c = __shfl_sync(mask, own_col, from, S::kRow);
      right[u] = key + (c < 0 ? 0 : c) * args.ldk;
      if constexpr (!kOneRow) left[u] = q + (c < 0 ? 0 : row_of(base + from)) * args.ldq;
    }
    const int at = (feature % S::kUnroll) * S::kNeighbours + neighbour;
    const int32_t c = __shfl_sync(mask, own_col, at, S::kRow);
    const bool writes = feature < S::kUnroll && c >= 0;
    A scale = 1;
    int64_t edge = 0;
    if (writes) {
      edge = edge_of(slot, base + at);
      if (args.row_scale) scale *= static_cast<const A*>(args.row_scale)[row_of(base + at)];
      if (args.col_scale) scale *= static_cast<const A*>(args.col_scale)[c];
    }
    for (int64_t head = 0; head < args.heads; ++head) {
      A dot[S::kUnroll] = {};
#pragma unroll 1
      for (int64_t k = head * width + feature * S::kVec; k < (head + 1) * width; k += S::kLanes * S::kVec) {
        Vec<T, S::kVec> one, other[S::kUnroll];
        if constexpr (kOneRow) one = load<T, S::kVec>(left[0] + k);
#pragma unroll
        for (int u = 0; u < S::kUnroll; ++u) other[u] = load<T, S::kVec>(right[u] + k);
#pragma unroll
        for (int u = 0; u < S::kUnroll; ++u) {
          if constexpr (!kOneRow) one = load<T, S::kVec>(left[u] + k);
#pragma unroll
          for (int v = 0; v < S::kVec; ++v) dot[u] += one[v] * other[u][v];
        }
      }
      const A total = sum_across<S::kLanes>(mask, lane, dot);
      if (writes) static_cast<T*>(args.out)[edge * args.heads + head] = narrow<T>(scale * total);
    }
  }
}

}  // namespace pyg_sparse::cuda
