// Several features side by side, in GCC's and clang's vectors: the compiler splits them into registers as wide as the
// function that they are inlined into may use. Left to loops, it may unroll these before it sees that they vectorize.
#pragma once

#include <cstring>
#include <type_traits>

#include "convert.h"

#pragma GCC diagnostic ignored "-Wpsabi"  // everything here is inlined: no vector is ever passed in a register

namespace pyg_sparse::cpu {

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
    Lanes<uint16_t, kCount> half;
    std::memcpy(&half, from, sizeof half);
    using Bits = Lanes<uint32_t, kCount>;
    const Bits bits = __builtin_convertvector(half, Bits);
    if constexpr (std::is_same_v<T, BFloat16>) return reinterpret_cast<To>(bits << 16);
    const Bits magnitude = (bits & 0x7fff) << 13;
    const Bits scaled = reinterpret_cast<Bits>(reinterpret_cast<To>(magnitude) * 0x1p112f);
    const Bits special = reinterpret_cast<Bits>(magnitude >= 0x0f800000u) & 0x7f800000u;
    return reinterpret_cast<To>(scaled | special | (bits & 0x8000) << 16);
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
    const Bits bits = reinterpret_cast<Bits>(lanes);
    Bits result;
    if constexpr (std::is_same_v<T, BFloat16>) {
      result = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
      result = lanes != lanes ? Bits{} + 0x7fc0 : result;
    } else {
      const Bits magnitude = bits & 0x7fffffff;
      const Bits subnormal =
          reinterpret_cast<Bits>(reinterpret_cast<Lanes<float, kCount>>(magnitude) + 0.5f) - 0x3f000000;
      result = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
      result = magnitude < 0x38800000 ? subnormal : result;
      result = magnitude >= 0x477ff000 ? Bits{} + 0x7c00 : result;
      result = magnitude > 0x7f800000 ? Bits{} + 0x7e00 : result;
      result |= (bits >> 16) & 0x8000;
    }
    const auto half = __builtin_convertvector(result, Lanes<uint16_t, kCount>);
    std::memcpy(to, &half, sizeof half);
  }
}

}  // namespace pyg_sparse::cpu
