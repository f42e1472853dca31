// The sum over one run of entries, shared by every format: K in blocks of accumulators that stay in registers, and a
// prefetch of the x rows a few entries ahead.
#pragma once

#include <algorithm>

#include "convert.h"
#include "pyg_sparse/operands.h"

namespace pyg_sparse::cpu {

constexpr int64_t kPrefetchDistance = 8;

PYG_SPARSE_INLINE int64_t edge_of(const SlotMap& slot, int64_t position) {
  return slot.wide ? static_cast<const int64_t*>(slot.edge)[position]
                   : static_cast<const int32_t*>(slot.edge)[position];
}

template <typename T, bool kWeighted>
PYG_SPARSE_INLINE Accumulate<T> coefficient(const SpmmArgs& args, int64_t head, const SlotMap& slot, int64_t position,
                                            int64_t col) {
  Accumulate<T> result = 1;
  if constexpr (kWeighted) {
    if (args.value) {
      const int64_t at = args.stored ? position : edge_of(slot, position) * args.heads + head;
      result = widen(static_cast<const T*>(args.value)[at]);
    }
    if (args.col_scale) result *= static_cast<const Accumulate<T>*>(args.col_scale)[col];
  }
  return result;
}

// Where a finished sum goes: a row of out, with the epilogue, or a row of partial, as it is.
template <typename T>
struct Sink {
  const SpmmArgs& args;
  int64_t row;      // of out; ignored for a partial
  int64_t partial;  // -1: out

  PYG_SPARSE_INLINE void operator()(int64_t k, int width, const Accumulate<T>* sum) const {
    using A = Accumulate<T>;
    if (partial >= 0) {
      A* to = static_cast<A*>(args.partial) + partial * args.k + k;
      for (int j = 0; j < width; ++j) to[j] = sum[j];
      return;
    }
    constexpr int kMost = 64;
    A value[kMost];
    const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
    for (int j = 0; j < width; ++j) value[j] = row_scale * sum[j];
    if (args.self_scale) {
      const A self_scale = static_cast<const A*>(args.self_scale)[row];
      const T* self = static_cast<const T*>(args.self) + row * args.ldself + k;
      for (int j = 0; j < width; ++j) value[j] += self_scale * widen(self[j]);
    }
    if (args.bias) {
      const A* bias = static_cast<const A*>(args.bias) + k;
      for (int j = 0; j < width; ++j) value[j] += bias[j];
    }
    if (args.relu) {
      for (int j = 0; j < width; ++j) value[j] = value[j] < A(0) ? A(0) : value[j];  // NaN stays NaN
    }
    T* to = static_cast<T*>(args.out) + row * args.k + k;
    for (int j = 0; j < width; ++j) to[j] = narrow<T>(value[j]);
  }
};

template <typename T, bool kWeighted, int kWidth>
PYG_SPARSE_INLINE void sum_block(const SpmmArgs& args, int64_t head, const int32_t* col, const SlotMap& slot,
                                 int64_t begin, int64_t end, int64_t k, const Sink<T>& sink) {
  using A = Accumulate<T>;
  constexpr int kPerLine = 64 / sizeof(T);
  const T* x = static_cast<const T*>(args.x) + k;
  A sum[kWidth] = {};
  for (int64_t p = begin; p < end; ++p) {
    const T* ahead = x + col[std::min(p + kPrefetchDistance, end - 1)] * args.ldx;
    for (int j = 0; j < kWidth; j += kPerLine) __builtin_prefetch(ahead + j);
    const T* source = x + col[p] * args.ldx;
    const A weight = coefficient<T, kWeighted>(args, head, slot, p, col[p]);
    for (int j = 0; j < kWidth; ++j) sum[j] += kWeighted ? weight * widen(source[j]) : widen(source[j]);
  }
  sink(k, kWidth, sum);
}

template <typename T, bool kWeighted>
PYG_SPARSE_INLINE void sum_entries(const SpmmArgs& args, const int32_t* col, const SlotMap& slot, int64_t begin,
                                   int64_t end, const Sink<T>& sink) {
  const int64_t width = args.k / args.heads;
  for (int64_t h = 0; h < args.heads; ++h) {
    int64_t k = h * width;
    const int64_t last = k + width;
    for (; last - k >= 64; k += 64) sum_block<T, kWeighted, 64>(args, h, col, slot, begin, end, k, sink);
    if (last - k >= 32) sum_block<T, kWeighted, 32>(args, h, col, slot, begin, end, k, sink), k += 32;
    if (last - k >= 16) sum_block<T, kWeighted, 16>(args, h, col, slot, begin, end, k, sink), k += 16;
    if (last - k >= 8) sum_block<T, kWeighted, 8>(args, h, col, slot, begin, end, k, sink), k += 8;
    if (last - k >= 4) sum_block<T, kWeighted, 4>(args, h, col, slot, begin, end, k, sink), k += 4;
    for (; k < last; ++k) sum_block<T, kWeighted, 1>(args, h, col, slot, begin, end, k, sink);
  }
}

template <typename T>
PYG_SPARSE_INLINE void dot_entries(const SddmmArgs& args, const int32_t* col, const SlotMap& slot, int64_t row,
                                   int64_t begin, int64_t end) {
  using A = Accumulate<T>;
  constexpr int kLanes = 16;
  constexpr int kPerLine = 64 / sizeof(T);
  const int64_t width = args.k / args.heads;
  const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
  for (int64_t p = begin; p < end; ++p) {
    const T* q = static_cast<const T*>(args.q) + row * args.ldq;
    const T* key = static_cast<const T*>(args.key);
    const T* ahead = key + col[std::min(p + kPrefetchDistance, end - 1)] * args.ldk;
    for (int64_t j = 0; j < std::min<int64_t>(args.k, 8 * kPerLine); j += kPerLine) __builtin_prefetch(ahead + j);
    const T* other = key + col[p] * args.ldk;
    const A scale = args.col_scale ? row_scale * static_cast<const A*>(args.col_scale)[col[p]] : row_scale;
    T* out = static_cast<T*>(args.out) + edge_of(slot, p) * args.heads;
    for (int64_t h = 0; h < args.heads; ++h, q += width, other += width) {
      A lane[kLanes] = {};
      int64_t k = 0;
      for (; k + kLanes <= width; k += kLanes) {
        for (int j = 0; j < kLanes; ++j) lane[j] += widen(q[k + j]) * widen(other[k + j]);
      }
      A dot = 0;
      for (; k < width; ++k) dot += widen(q[k]) * widen(other[k]);
      for (int j = 0; j < kLanes; ++j) dot += lane[j];
      out[h] = narrow<T>(scale * dot);
    }
  }
}

inline bool weighted(const SpmmArgs& args) { return args.value || args.col_scale; }

}  // namespace pyg_sparse::cpu
