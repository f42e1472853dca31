// spmm_extremum: the largest message over one row's entries, and where it is.
#pragma once

#include <limits>

#include "pyg_sparse/extremum.h"
#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

// Where a run's result goes: a row of out and arg, or of partial and partial_arg, where the sign stays changed.
template <typename T>
PYG_SPARSE_INLINE void write_best(const ExtremumArgs& args, const Run& run, int64_t k, int count,
                                  const Accumulate<T>* value, const int64_t* place) {
  using A = Accumulate<T>;
  const bool part = run.partial >= 0;
  const int64_t at = (part ? run.partial : run.row) * args.k + k;
  std::memcpy((part ? args.partial_arg : args.arg) + at, place, count * sizeof *place);
  if (part) {
    std::memcpy(static_cast<A*>(args.partial) + at, value, count * sizeof *value);
  } else {
    T* out = static_cast<T*>(args.out) + at;
    const A sign = args.largest ? A(1) : A(-1);
    for (int j = 0; j < count; ++j) out[j] = narrow<T>(place[j] < 0 ? 0 : sign * value[j]);
  }
}

// The best message so far of several features, and its place among the entries; -1: none but -inf.
template <typename A, int kLanes>
struct Best {
  using Place = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;  // as wide as A
  Lanes<A, kLanes> value = Lanes<A, kLanes>{} - std::numeric_limits<A>::infinity();
  Lanes<Place, kLanes> at = Lanes<Place, kLanes>{} - 1;

  PYG_SPARSE_INLINE void offer(Lanes<A, kLanes> message, Place place) {
    take(message, Lanes<Place, kLanes>{} + place, beats_it(message));
  }

  // What another has found. Among equal ones the first wins.
  PYG_SPARSE_INLINE void merge(const Best& other) {
    using Later = Lanes<std::make_unsigned_t<Place>, kLanes>;  // -1 is later than any place
    const auto earlier = __builtin_bit_cast(Later, other.at) < __builtin_bit_cast(Later, at);
    const auto equal = (other.value == value) | ((other.value != other.value) & (value != value));
    take(other.value, other.at, beats_it(other.value) | (equal & earlier));
  }

 private:
  // As beats(), in every lane.
  PYG_SPARSE_INLINE auto beats_it(Lanes<A, kLanes> message) const {
    if constexpr (kLanes == 1) {
      return beats(message, value);
    } else {
      return ~(message <= value) & (value == value);
    }
  }

  template <typename Mask>
  PYG_SPARSE_INLINE void take(Lanes<A, kLanes> message, Lanes<Place, kLanes> place, Mask wins) {
    value = wins ? message : value;
    at = wins ? place : at;
  }
};

template <typename T, typename S>
PYG_SPARSE_INLINE void best_entries(const ExtremumArgs& args, const Block& block, const int32_t* col,
                                    const SlotMap& slot, const Run& run) {
  using A = Accumulate<T>;
  constexpr int kLanes = kLanesIn<A, S::kWidth>, kParts = S::kWidth / kLanes;
  constexpr int kChains = kParts < 4 ? 4 / kParts : 1;  // a comparison waits for the one before
  using Found = Best<A, kLanes>;
  const T* x = static_cast<const T*>(args.x) + block.k;
  const A sign = args.largest ? A(1) : A(-1);
  const auto offer = [&](int64_t p, int64_t begin, Found* best) PYG_SPARSE_LAMBDA_INLINE {
    const A weight =
        S::kWeighted && args.value ? sign * widen(static_cast<const T*>(args.value)[edge_of(slot, p)]) : sign;
    messages<T, S>(x, args.ldx, col, p, run.last, weight,
                   [&](int j, Lanes<A, kLanes> message) PYG_SPARSE_LAMBDA_INLINE {
                     best[j].offer(message, static_cast<typename Found::Place>(p - begin));
                   });
  };
  // The best of the entries begin .. end, in the order of features.
  constexpr int64_t kStretch = int64_t{1} << 30;  // of places that a Place can tell apart
  const auto find = [&](int64_t begin, int64_t end, A* value, int64_t* place) PYG_SPARSE_LAMBDA_INLINE {
    Found best[kChains][kParts];
    int64_t p = begin;
    for (; p + kChains <= end; p += kChains) {
      for (int c = 0; c < kChains; ++c) offer(p + c, begin, best[c]);
    }
    for (; p < end; ++p) offer(p, begin, best[0]);
    for (int j = 0; j < kParts; ++j) {
      for (int c = 1; c < kChains; ++c) best[0][j].merge(best[c][j]);
    }
    if constexpr (kInPairs<T, S>) {
      for (int j = 0; j < kParts; j += 2) {
        join<kLanes>(best[0][j].value, best[0][j + 1].value);
        join<kLanes>(best[0][j].at, best[0][j + 1].at);
      }
    }
    typename Found::Place at[S::kWidth];
    for (int j = 0; j < kParts; ++j) {
      std::memcpy(value + j * kLanes, &best[0][j].value, sizeof best[0][j].value);
      std::memcpy(at + j * kLanes, &best[0][j].at, sizeof best[0][j].at);
    }
    // Where nothing beats -inf, every message is -inf, and the first of them wins.
    for (int j = 0; j < S::kWidth; ++j)
      place[j] = begin == end ? -1 : begin + std::max<typename Found::Place>(at[j], 0);
  };
  A value[S::kWidth];
  int64_t place[S::kWidth];
  find(run.begin, std::min(run.begin + kStretch, run.end), value, place);
  for (int64_t begin = run.begin + kStretch; begin < run.end; begin += kStretch) {
    A later[S::kWidth];
    int64_t there[S::kWidth];
    find(begin, std::min(begin + kStretch, run.end), later, there);
    for (int j = 0; j < S::kWidth; ++j) {
      const bool wins = beats(later[j], value[j]);
      value[j] = wins ? later[j] : value[j];
      place[j] = wins ? there[j] : place[j];
    }
  }
  write_best<T>(args, run, block.k, S::kWidth, value, place);
}

template <typename T, typename S, typename Format>
void extremum_range(const Format& a, const ExtremumArgs& given, Block block) {
  const ExtremumArgs args = given;  // nothing that is written can be part of this copy
  for_each_run(a, block.first, block.last, block.until,
               [&](const Run& run) PYG_SPARSE_LAMBDA_INLINE { best_entries<T, S>(args, block, a.col, a.slot, run); });
}

template <typename Format>
void extremum(const Format& a, const ExtremumArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kMost = std::max(16, 4 * kVectorBytes / static_cast<int>(sizeof(Accumulate<T>)));
    const auto run = [&]<bool kWeighted>() {
      for_blocks_of<kWeighted, true, kMost>(args.k, 1, 0, args.k, first, last, [&](auto shape, const Block& block) {
        extremum_range<T, decltype(shape)>(a, args, block);
      });
    };
    args.value || !args.largest ? run.template operator()<true>() : run.template operator()<false>();
  });
}

// The partials of a row are in stored order, so that among equal ones the first has the lowest position.
template <typename T>
void combine_extremum_range(const SharedRows& shared, const ExtremumArgs& args, int64_t first, int64_t last) {
  using A = Accumulate<T>;
  constexpr int kWidth = 64;
  for (int64_t i = first; i < last; ++i) {
    for (int64_t k = 0; k < args.k; k += kWidth) {
      const int width = static_cast<int>(std::min<int64_t>(kWidth, args.k - k));
      A best[kWidth] = {};
      int64_t at[kWidth];
      for (int j = 0; j < width; ++j) at[j] = -1;
      for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) {
        const A* message = static_cast<const A*>(args.partial) + p * args.k + k;
        const int64_t* position = args.partial_arg + p * args.k + k;
        for (int j = 0; j < width; ++j) {
          if (at[j] >= 0 && !beats(message[j], best[j])) continue;
          best[j] = message[j];
          at[j] = position[j];
        }
      }
      write_best<T>(args, Run{0, 0, 0, shared.row[i], -1, 0}, k, width, best, at);
    }
  }
}

inline void combine_extremum(const SharedRows& shared, const ExtremumArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype,
              [&](auto tag) { combine_extremum_range<typename decltype(tag)::type>(shared, args, first, last); });
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
