// sddmm: the dot products of one row's entries, several entries at a time, each with a vector of sums, which are added
// up together.
#pragma once

#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

constexpr int64_t kDotDistance = 16;  // entries ahead whose rows are asked for

template <typename A>
using Quad = Lanes<A, 16 / sizeof(A)>;

template <typename A, int kLanes>
PYG_SPARSE_INLINE Quad<A> add_halves(Lanes<A, kLanes> v) {
  if constexpr (sizeof v == sizeof(Quad<A>)) {
    return v;
  } else {
    Lanes<A, kLanes / 2> half[2];
    std::memcpy(half, &v, sizeof half);
    return add_halves<A, kLanes / 2>(half[0] + half[1]);
  }
}

// The sums of a's pairs of neighbours, then of b's.
template <typename A>
PYG_SPARSE_INLINE Quad<A> add_pairs(Quad<A> a, Quad<A> b) {
  if constexpr (sizeof(A) == 4) {
    return __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
  } else {
    return __builtin_shufflevector(a, b, 0, 2) + __builtin_shufflevector(a, b, 1, 3);
  }
}

// The sums of the elements of each v, side by side: in memory, parts of a vector would have to be there before it is
// read.
template <typename A, int kLanes, int kCount>
PYG_SPARSE_INLINE Lanes<A, kCount> sum_each(const Lanes<A, kLanes>* v) {
  constexpr int kQuad = 16 / sizeof(A);
  if constexpr (kCount == 2 * kQuad) {
    const auto join = [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) PYG_SPARSE_LAMBDA_INLINE {
      return __builtin_shufflevector(sum_each<A, kLanes, kQuad>(v), sum_each<A, kLanes, kQuad>(v + kQuad), kIndex...);
    };
    return join(std::make_integer_sequence<int, kCount>());
  } else {
    const auto pairs = [&](int i) PYG_SPARSE_LAMBDA_INLINE {
      return add_pairs<A>(add_halves<A, kLanes>(v[i]), add_halves<A, kLanes>(v[i + 1]));
    };
    if constexpr (sizeof(A) == 4) {
      return add_pairs<A>(pairs(0), pairs(2));
    } else {
      return pairs(0);
    }
  }
}

template <typename T, int kLanes>
PYG_SPARSE_INLINE void dot_entries(const SddmmArgs& args, const int32_t* rows, const int32_t* col, const SlotMap& slot,
                                   const Run& run) {
  using A = Accumulate<T>;
  constexpr int kGroup = 32 / sizeof(A);  // entries
  const int64_t row = run.row, width = args.k / args.heads;
  const T* key = static_cast<const T*>(args.key);
  const A row_scale = args.row_scale ? static_cast<const A*>(args.row_scale)[row] : A(1);
  const auto write = [&](int64_t p, int64_t head, A dot) PYG_SPARSE_LAMBDA_INLINE {
    const A scale = args.col_scale ? row_scale * static_cast<const A*>(args.col_scale)[col[p]] : row_scale;
    static_cast<T*>(args.out)[edge_of(slot, p) * args.heads + head] = narrow<T>(scale * dot);
  };
  const auto prefetch = [&](int64_t p) PYG_SPARSE_LAMBDA_INLINE {
    p = std::min(p, run.last - 1);
    __builtin_prefetch(static_cast<T*>(args.out) + edge_of(slot, p) * args.heads, 1);  // results lie anywhere
    prefetch_row(key + std::max(col[p], 0) * args.ldk, args.k);
  };
  // The entries p .. p + kCount, or fewer at the end of the run, where the last one fills up.
  const auto dots = [&]<int kCount>(int64_t p, std::integral_constant<int, kCount>) PYG_SPARSE_LAMBDA_INLINE {
    const T* q = static_cast<const T*>(args.q) + row * args.ldq;
    const T* other[kCount];
    for (int e = 0; e < kCount; ++e) {
      other[e] = key + col[std::min(p + e, run.end - 1)] * args.ldk;
      prefetch(p + kDotDistance + e);
    }
    const int count = static_cast<int>(std::min<int64_t>(kCount, run.end - p));
    for (int64_t h = 0; h < args.heads; ++h, q += width) {
      Lanes<A, kLanes> sum[kCount];
      A rest[kCount];
      for (int e = 0; e < kCount; ++e) sum[e] = Lanes<A, kLanes>{}, rest[e] = 0;
      int64_t k = 0;
      if constexpr (std::is_same_v<T, BFloat16>) {
        for (; k + 2 * kLanes <= width; k += 2 * kLanes) {
          const Split<kLanes> features = load_split<kLanes>(q + k);
          for (int e = 0; e < kCount; ++e) {
            const Split<kLanes> others = load_split<kLanes>(other[e] + h * width + k);
            sum[e] += features.even * others.even;
            sum[e] += features.odd * others.odd;
          }
        }
      }
      for (; k + kLanes <= width; k += kLanes) {
        const auto features = load<T, kLanes>(q + k);
        for (int e = 0; e < kCount; ++e) sum[e] += features * load<T, kLanes>(other[e] + h * width + k);
      }
      for (; k < width; ++k) {
        for (int e = 0; e < kCount; ++e) rest[e] += widen(q[k]) * widen(other[e][h * width + k]);
      }
      const auto total = sum_each<A, kLanes, kCount>(sum);
      A dots[kCount];
      std::memcpy(dots, &total, sizeof total);
      for (int e = 0; e < count; ++e) write(p + e, h, rest[e] + dots[e]);
    }
  };
  prefetch_row(static_cast<const T*>(args.q) + rows[run.ahead] * args.ldq, args.k);
  int64_t p = run.begin;
  for (; p + kGroup / 2 < run.end; p += kGroup) dots(p, std::integral_constant<int, kGroup>{});
  for (; p < run.end; p += kGroup / 2) dots(p, std::integral_constant<int, kGroup / 2>{});
}

template <typename T, int kLanes, typename Format>
void sddmm_range(const Format& a, const SddmmArgs& given, int64_t first, int64_t last) {
  const SddmmArgs args = given;  // nothing that is written can be part of this copy
  for_each_run(a, first, last, last, [&](const Run& run) PYG_SPARSE_LAMBDA_INLINE {
    dot_entries<T, kLanes>(args, a.row, a.col, a.slot, run);
  });
}

template <typename Format>
void sddmm(const Format& a, const SddmmArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kFull = kVectorBytes / sizeof(Accumulate<T>), kHalf = kVectorBytes == 64 ? kFull / 2 : kFull;
    // What does not fill a vector is added up one by one.
    const bool full = args.k / args.heads % kFull == 0;
    full ? sddmm_range<T, kFull>(a, args, first, last) : sddmm_range<T, kHalf>(a, args, first, last);
  });
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
