// One row's entries, shared by every format and operator: features in blocks whose results stay in registers, and rows
// of x asked for a few entries ahead.
#pragma once

#include <algorithm>
#include <bit>

#include "lanes.h"
#include "pyg_sparse/operands.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

constexpr int64_t kPrefetchDistance = 8;  // entries
constexpr int64_t kRowsAhead = 4;

PYG_SPARSE_INLINE int64_t edge_of(const SlotMap& slot, int64_t position) {
  return slot.wide ? static_cast<const int64_t*>(slot.edge)[position]
                   : static_cast<const int32_t*>(slot.edge)[position];
}

// Entries of one row, and where the entries end that this thread goes on to, whose rows of x may be asked for early.
struct Run {
  int64_t begin, end, last;
  int64_t row;      // of the matrix
  int64_t partial;  // where the result of a part of a row goes; -1: the run is the whole row
  int64_t ahead;    // where the format's row has one that comes soon
};

// Asks for the first bytes of a row of features, up to eight lines, early.
template <typename T>
PYG_SPARSE_INLINE void prefetch_row(const T* row, int64_t k) {
  const char* from = reinterpret_cast<const char*>(row);
  const int64_t bytes = std::min<int64_t>(k * sizeof(T), 512);
  for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(from + b);
}

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

// Whether the parts of a block of messages come in pairs that are split.
template <typename T, typename S>
constexpr bool kInPairs =
    std::is_same_v<T, BFloat16> && S::kWidth % (2 * kLanesIn<float, S::kWidth>) == 0 && kLanesIn<float, S::kWidth> > 1;

// Calls add(part, message) for the messages of entry p, weight * x[col[p], block], in vectors of a register.
template <typename T, typename S, typename Add>
PYG_SPARSE_INLINE void messages(const T* x, int64_t ldx, const int32_t* col, int64_t p, int64_t last,
                                Accumulate<T> weight, const Add& add) {
  constexpr int kLanes = kLanesIn<Accumulate<T>, S::kWidth>;
  if constexpr (S::kPrefetch) {
    const T* ahead = x + std::max(col[std::min(p + kPrefetchDistance, last - 1)], 0) * ldx;
    for (int j = 0; j < S::kWidth; j += 64 / sizeof(T)) __builtin_prefetch(ahead + j);
  }
  const T* source = x + col[p] * ldx;
  const auto weigh = [&](auto features)
                         PYG_SPARSE_LAMBDA_INLINE { return S::kWeighted ? weight * features : features; };
  if constexpr (kInPairs<T, S>) {
    for (int j = 0; j < S::kWidth / kLanes; j += 2) {
      const Split<kLanes> features = load_split<kLanes>(source + j * kLanes);
      add(j, weigh(features.even));
      add(j + 1, weigh(features.odd));
    }
  } else {
    for (int j = 0; j < S::kWidth / kLanes; ++j) add(j, weigh(load<T, kLanes>(source + j * kLanes)));
  }
}

// The features first .. last of a head: how many of them to take next, from k on. A last block may begin before k, and
// repeats what its features have already: one block costs less than several narrower ones.
template <int kMost>
PYG_SPARSE_INLINE int64_t block_width(int64_t first, int64_t k, int64_t last) {
  const auto left = static_cast<uint64_t>(last - k);
  if (left >= kMost) return kMost;
  const int64_t wider = left == 2 ? 4 : static_cast<int64_t>(std::bit_ceil(left));  // there is no block of 2
  const bool repeat = left <= 16 || static_cast<int64_t>(left) * 4 >= wider * 3;
  if (repeat && wider <= last - first) return wider;
  return left < 4 ? 1 : static_cast<int64_t>(std::bit_floor(left));
}

// Calls call(Shape, Block) for all features of some items at a time, so that columns and rows of x are still at hand.
template <bool kWeighted, bool kPrefetch, int kMost, typename Call>
void for_blocks_of(int64_t width, int64_t heads, int64_t begin, int64_t end, int64_t first, int64_t last,
                   const Call& call) {
  constexpr int64_t kItems = 16;
  const bool one = heads == 1 && block_width<kMost>(begin, begin, end) == end - begin;
  const int64_t step = one ? std::max<int64_t>(last - first, 1) : kItems;
  for (int64_t item = first; item < last; item += step) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t k = begin; k < end;) {
        const int64_t next = block_width<kMost>(begin, k, end);
        const auto take = [&]<int kWidth>(std::integral_constant<int, kWidth>) {
          const int64_t from = std::min(k, end - kWidth);
          call(Shape<kWeighted, kPrefetch, kWidth>{},
               Block{h, h * width + from, item, std::min(item + step, last), last});
          k = from + kWidth;
        };
        if constexpr (kMost >= 64) {
          if (next == 64) take(std::integral_constant<int, 64>{});
        }
        if constexpr (kMost >= 32) {
          if (next == 32) take(std::integral_constant<int, 32>{});
        }
        if (next == 16) take(std::integral_constant<int, 16>{});
        if (next == 8) take(std::integral_constant<int, 8>{});
        if (next == 4) take(std::integral_constant<int, 4>{});
        if (next == 1) take(std::integral_constant<int, 1>{});
      }
    }
  }
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
