// spmm_extremum: the largest message over one row's entries, and where it is.
#pragma once

#include <limits>

#include "pyg_sparse/extremum.h"
#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

template <typename T>
PYG_SPARSE_INLINE void write_best(const ExtremumArgs& args, const Run& run, int64_t k, Accumulate<T> best, int64_t at) {
  using A = Accumulate<T>;
  if (run.partial >= 0) {
    static_cast<A*>(args.partial)[run.partial * args.k + k] = best;
    args.partial_arg[run.partial * args.k + k] = at;
  } else {
    static_cast<T*>(args.out)[run.row * args.k + k] = narrow<T>(at < 0 ? 0 : args.largest ? best : -best);
    args.arg[run.row * args.k + k] = at;
  }
}

template <typename T, typename S>
PYG_SPARSE_INLINE void best_entries(const ExtremumArgs& args, const Block& block, const int32_t* col,
                                    const SlotMap& slot, const Run& run) {
  using A = Accumulate<T>;
  using Place = std::conditional_t<sizeof(A) == 8, int64_t, int32_t>;  // as wide as A, relative to the run's begin
  constexpr int kLanes = kLanesIn<A, S::kWidth>, kParts = S::kWidth / kLanes;
  const T* x = static_cast<const T*>(args.x) + block.k;
  const A sign = args.largest ? A(1) : A(-1);
  Lanes<A, kLanes> best[kParts];
  Lanes<Place, kLanes> at[kParts];
  int64_t place[S::kWidth];
  for (int j = 0; j < kParts; ++j) best[j] = Lanes<A, kLanes>{} - std::numeric_limits<A>::infinity();
  // Where nothing beats -inf, every message is -inf, and the first of them wins.
  for (int j = 0; j < S::kWidth; ++j) place[j] = run.begin < run.end ? run.begin : -1;
  constexpr int64_t kStretch = int64_t{1} << 30;  // of places that a Place can tell apart
  for (int64_t begin = run.begin; begin < run.end; begin += kStretch) {
    for (int j = 0; j < kParts; ++j) at[j] = Lanes<Place, kLanes>{} - 1;
    for (int64_t p = begin; p < std::min(begin + kStretch, run.end); ++p) {
      const A weight = args.value ? sign * widen(static_cast<const T*>(args.value)[edge_of(slot, p)]) : sign;
      const auto here = static_cast<Place>(p - begin);
      messages<T, S>(x, args.ldx, col, p, run.last, weight,
                     [&](int j, Lanes<A, kLanes> message) PYG_SPARSE_LAMBDA_INLINE {
                       if constexpr (kLanes == 1) {
                         const bool wins = beats(message, best[j]);
                         best[j] = wins ? message : best[j];
                         at[j] = wins ? here : at[j];
                       } else {  // as beats()
                         const Lanes<Place, kLanes> wins = ~(message <= best[j]) & (best[j] == best[j]);
                         best[j] = wins ? message : best[j];
                         at[j] = wins ? Lanes<Place, kLanes>{} + here : at[j];
                       }
                     });
    }
    Place found[S::kWidth];
    std::memcpy(found, at, sizeof found);
    for (int j = 0; j < S::kWidth; ++j) place[j] = found[j] < 0 ? place[j] : begin + found[j];
  }
  A value[S::kWidth];
  std::memcpy(value, best, sizeof value);
  for (int j = 0; j < S::kWidth; ++j) write_best<T>(args, run, block.k + j, value[j], place[j]);
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
    for_blocks_of<true, true, kMost>(args.k, 1, 0, args.k, first, last, [&](auto shape, const Block& block) {
      extremum_range<T, decltype(shape)>(a, args, block);
    });
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
      const Run whole{0, 0, 0, shared.row[i], -1};
      for (int j = 0; j < width; ++j) write_best<T>(args, whole, k + j, best[j], at[j]);
    }
  }
}

inline void combine_extremum(const SharedRows& shared, const ExtremumArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype,
              [&](auto tag) { combine_extremum_range<typename decltype(tag)::type>(shared, args, first, last); });
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
