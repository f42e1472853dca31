// The sum over one run of entries, shared by every format: K in blocks of accumulators that stay in registers, and a
// prefetch of the x rows a few entries ahead.
#pragma once

#include <algorithm>
#include <bit>
#include <type_traits>

#include "lanes.h"
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
  using A = Accumulate<T>;
  const SpmmArgs& args;
  int64_t row;      // of out; ignored for a partial
  int64_t partial;  // -1: out

  // Features k .. k + kCount - 1.
  template <int kCount>
  PYG_SPARSE_INLINE void write(int64_t k, Lanes<A, kCount> sum) const {
    if (partial >= 0) {
      return store<A, kCount>(static_cast<A*>(args.partial) + partial * args.k + k, sum);
    }
    if (args.row_scale) sum *= static_cast<const A*>(args.row_scale)[row];
    if (args.self_scale) {
      const T* self = static_cast<const T*>(args.self) + row * args.ldself + k;
      sum += static_cast<const A*>(args.self_scale)[row] * load<T, kCount>(self);
    }
    if (args.bias) sum += load<A, kCount>(static_cast<const A*>(args.bias) + k);
    if (args.relu) sum = sum < 0 ? Lanes<A, kCount>{} : sum;  // NaN stays NaN
    store<T, kCount>(static_cast<T*>(args.out) + row * args.k + k, sum);
  }
};

// Entries of a run, and where the entries end that this thread goes on to, whose rows of x may be asked for early.
struct Run {
  int64_t begin, end, last;
};

// What a loop over rows is compiled for: that many features at a time.
template <bool kWeighted_, bool kPrefetch_, int kWidth_>
struct Shape {
  static constexpr bool kWeighted = kWeighted_, kPrefetch = kPrefetch_;
  static constexpr int kWidth = kWidth_;
};

// The features of a head from k on, for the items first .. last of a range that ends with the item `until`.
struct Block {
  int64_t head, k;
  int64_t first, last, until;
};

template <typename T, typename S>
PYG_SPARSE_INLINE void sum_entries(const SpmmArgs& args, const Block& block, const int32_t* col, const SlotMap& slot,
                                   Run run, const Sink<T>& sink) {
  using A = Accumulate<T>;
  constexpr int kLanes = std::min<int>(S::kWidth, kVectorBytes / sizeof(A)), kParts = S::kWidth / kLanes;
  constexpr bool kPairs = S::kWidth * sizeof(A) <= 32;  // an addition of few features waits for the one before
  const T* x = static_cast<const T*>(args.x) + (block.k - args.first);
  using Sums = Lanes<A, kLanes>[kParts];
  Sums sum = {};
  const auto add = [&](int64_t p, Sums& to) PYG_SPARSE_LAMBDA_INLINE {
    if constexpr (S::kPrefetch) {
      const T* ahead = x + std::max(col[std::min(p + kPrefetchDistance, run.last - 1)], 0) * args.ldx;
      for (int j = 0; j < S::kWidth; j += 64 / sizeof(T)) __builtin_prefetch(ahead + j);
    }
    const T* source = x + col[p] * args.ldx;
    const A weight = coefficient<T, S::kWeighted>(args, block.head, slot, p, col[p]);
    A wide[S::kWidth];
    if constexpr (sizeof(T) == 2) {  // widened part by part, they would take up to twice as long
      for (int j = 0; j < S::kWidth; ++j) wide[j] = widen(source[j]);
    }
    for (int j = 0; j < kParts; ++j) {
      Lanes<A, kLanes> features;
      if constexpr (sizeof(T) == 2) {
        features = load<A, kLanes>(wide + j * kLanes);
      } else {
        features = load<T, kLanes>(source + j * kLanes);
      }
      to[j] += S::kWeighted ? weight * features : features;
    }
  };
  int64_t p = run.begin;
  if constexpr (kPairs) {
    Sums other = {};
    for (; p + 2 <= run.end; p += 2) add(p, sum), add(p + 1, other);
    sum[0] += other[0];
  }
  for (; p < run.end; ++p) add(p, sum);
  for (int j = 0; j < kParts; ++j) sink.template write<kLanes>(block.k + j * kLanes, sum[j]);
}

// Calls call(Shape, Block) for all features of some items at a time, so that columns and rows of x are still at hand.
template <bool kWeighted, bool kPrefetch, typename Call>
void for_blocks_of(const SpmmArgs& args, int64_t first, int64_t last, const Call& call) {
  constexpr int64_t kItems = 16;
  const int64_t width = args.k / args.heads, begin = args.first, end = args.last > 0 ? args.last : width;
  const auto features = static_cast<uint64_t>(end - begin);
  const bool one = args.heads == 1 && std::has_single_bit(features) && features <= 64 && features != 2;
  const int64_t step = one ? std::max<int64_t>(last - first, 1) : kItems;
  for (int64_t item = first; item < last; item += step) {
    for (int64_t h = 0; h < args.heads; ++h) {
      for (int64_t k = begin; k < end;) {
        const Block block{h, h * width + k, item, std::min(item + step, last), last};
        const auto take = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
          call(Shape<kWeighted, kPrefetch, kWidth>{}, block);
          k += kWidth;
        };
        if (end - k >= 64) {
          take(std::integral_constant<int, 64>{});
        } else if (end - k >= 32) {
          take(std::integral_constant<int, 32>{});
        } else if (end - k >= 16) {
          take(std::integral_constant<int, 16>{});
        } else if (end - k >= 8) {
          take(std::integral_constant<int, 8>{});
        } else if (end - k >= 4) {
          take(std::integral_constant<int, 4>{});
        } else {
          take(std::integral_constant<int, 1>{});
        }
      }
    }
  }
}

template <typename Call>
void for_blocks(const SpmmArgs& args, int64_t first, int64_t last, const Call& call) {
  if (args.value || args.col_scale) {
    args.prefetch ? for_blocks_of<true, true>(args, first, last, call)
                  : for_blocks_of<true, false>(args, first, last, call);
  } else {
    args.prefetch ? for_blocks_of<false, true>(args, first, last, call)
                  : for_blocks_of<false, false>(args, first, last, call);
  }
}

}  // namespace pyg_sparse::cpu
