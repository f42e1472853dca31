// Several features side by side, in GCC's and clang's vectors. Of loops, some were unrolled before they were
// vectorized.
#pragma once

#include <cstring>
#include <type_traits>

#include "convert.h"

namespace pyg_sparse::cpu {

// As AVX2 has. Wider ones are kept in memory there, and are not faster where registers are wider
// (docs/kernel-notes.md).
constexpr int kVectorBytes = 32;

template <typename A, int kCount>
struct LanesOf {
  typedef A Type __attribute__((vector_size(sizeof(A) * kCount)));
};
template <typename A>
struct LanesOf<A, 1> {
  using Type = A;
};
template <typename A, int kCount>
using Lanes = typename LanesOf<A, kCount>::Type;

// As widen, from memory of any alignment.
template <typename T, int kCount>
PYG_SPARSE_INLINE Lanes<Accumulate<T>, kCount> load(const T* from) {
  using To = Lanes<Accumulate<T>, kCount>;
  if constexpr (kCount == 1) {
    return widen(*from);
  } else if constexpr (std::is_same_v<T, Accumulate<T>>) {
    To lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
  } else {
    // As vectors, 16-bit elements would take several times as long to convert.
    Accumulate<T> wide[kCount];
    for (int j = 0; j < kCount; ++j) wide[j] = widen(from[j]);
    To lanes;
    std::memcpy(&lanes, wide, sizeof lanes);
    return lanes;
  }
}

// As narrow.
template <typename T, int kCount>
PYG_SPARSE_INLINE void store(T* to, Lanes<Accumulate<T>, kCount> lanes) {
  if constexpr (kCount == 1) {
    *to = narrow<T>(lanes);
  } else if constexpr (std::is_same_v<T, Accumulate<T>>) {
    std::memcpy(to, &lanes, sizeof lanes);
  } else {
    using Bits = Lanes<uint32_t, kCount>;
    const auto half =
        __builtin_convertvector(rounded<T>(lanes, __builtin_bit_cast(Bits, lanes)), Lanes<uint16_t, kCount>);
    std::memcpy(to, &half, sizeof half);
  }
}

}  // namespace pyg_sparse::cpu
