// Several features side by side, in GCC's and clang's vectors. Of loops, some were unrolled before they were
// vectorized.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "convert.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

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

// As many elements of a vector as a register holds, or all of kCount.
template <typename A, int kCount>
constexpr int kLanesIn =
    kCount < kVectorBytes / static_cast<int>(sizeof(A)) ? kCount : kVectorBytes / static_cast<int>(sizeof(A));

template <typename To, typename From>
PYG_SPARSE_INLINE To load_as(const From* from) {
  To lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

// As widen, from memory of any alignment.
template <typename T, int kCount>
PYG_SPARSE_INLINE Lanes<Accumulate<T>, kCount> load(const T* from) {
  using To = Lanes<Accumulate<T>, kCount>;
  if constexpr (kCount == 1) {
    return widen(*from);
  } else if constexpr (std::is_same_v<T, Accumulate<T>>) {
    return load_as<To>(from);
#if defined(__x86_64__)  // what more there is, kVectorBytes tells: a pragma's target defines no macros
  } else if constexpr (std::is_same_v<T, BFloat16> && kCount == 8 && kVectorBytes >= 32) {
    return __builtin_bit_cast(To, _mm256_slli_epi32(_mm256_cvtepu16_epi32(load_as<__m128i>(from)), 16));
  } else if constexpr (std::is_same_v<T, BFloat16> && kCount == 16 && kVectorBytes >= 64) {
    return __builtin_bit_cast(To, _mm512_slli_epi32(_mm512_cvtepu16_epi32(load_as<__m256i>(from)), 16));
  } else if constexpr (std::is_same_v<T, Float16> && kCount == 8 && kVectorBytes >= 32) {
    return __builtin_bit_cast(To, _mm256_cvtph_ps(load_as<__m128i>(from)));
  } else if constexpr (std::is_same_v<T, Float16> && kCount == 16 && kVectorBytes >= 64) {
    return __builtin_bit_cast(To, _mm512_cvtph_ps(load_as<__m256i>(from)));
#endif
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    const auto bits = load_as<Lanes<uint16_t, kCount>>(from);
    return __builtin_bit_cast(To, __builtin_convertvector(bits, Lanes<uint32_t, kCount>) << 16);
  } else {
    Accumulate<T> wide[kCount];
    for (int j = 0; j < kCount; ++j) wide[j] = widen(from[j]);
    return load_as<To>(wide);
  }
}

// 2 kCount features of bfloat16, those at even places and those at odd ones: a shift and a mask widen them, where side
// by side they would have to be moved as well.
template <int kCount>
struct Split {
  Lanes<float, kCount> even, odd;
};

template <int kCount>
PYG_SPARSE_INLINE Split<kCount> load_split(const BFloat16* from) {
  const auto pairs = load_as<Lanes<uint32_t, kCount>>(from);
  return {__builtin_bit_cast(Lanes<float, kCount>, pairs << 16),
          __builtin_bit_cast(Lanes<float, kCount>, pairs & 0xffff0000u)};
}

// Side by side again: the first half of them in even, the second in odd.
template <int kCount, typename Vector>
PYG_SPARSE_INLINE void join(Vector& even, Vector& odd) {
  const auto from = [&]<int kFirst, int... kIndex>(std::integral_constant<int, kFirst>,
                                                   std::integer_sequence<int, kIndex...>) PYG_SPARSE_LAMBDA_INLINE {
    return __builtin_shufflevector(even, odd, (kFirst + kIndex % 2 * kCount + kIndex / 2)...);
  };
  constexpr auto kAll = std::make_integer_sequence<int, kCount>();
  const Vector first = from(std::integral_constant<int, 0>(), kAll);
  odd = from(std::integral_constant<int, kCount / 2>(), kAll);
  even = first;
}

// As narrow, to the bits of 16-bit elements.
template <typename T, int kCount>
PYG_SPARSE_INLINE auto narrowed(Lanes<Accumulate<T>, kCount> lanes) {
  if constexpr (kCount == 1) {
    return narrow<T>(lanes);
  } else {
    using Bits = Lanes<uint32_t, kCount>;
    return __builtin_convertvector(rounded<T>(lanes, __builtin_bit_cast(Bits, lanes)), Lanes<uint16_t, kCount>);
  }
}

template <typename T, int kCount>
PYG_SPARSE_INLINE void store(T* to, Lanes<Accumulate<T>, kCount> lanes) {
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    std::memcpy(to, &lanes, sizeof lanes);
  } else {
    const auto bits = narrowed<T, kCount>(lanes);
    std::memcpy(to, &bits, sizeof bits);
  }
}

#if defined(__x86_64__)
template <typename Bits>
PYG_SPARSE_INLINE void stream_bits(void* to, Bits bits) {
  if constexpr (sizeof bits == 16) {
    _mm_stream_si128(static_cast<__m128i*>(to), __builtin_bit_cast(__m128i, bits));
  } else if constexpr (sizeof bits == 32 && kVectorBytes >= 32) {
    _mm256_stream_si256(static_cast<__m256i*>(to), __builtin_bit_cast(__m256i, bits));
  } else if constexpr (sizeof bits == 64 && kVectorBytes >= 64) {
    _mm512_stream_si512(static_cast<__m512i*>(to), __builtin_bit_cast(__m512i, bits));
  } else {
    std::memcpy(to, &bits, sizeof bits);
  }
}
#endif

// To memory aligned as the vector is, past the caches; what other threads are to see of it needs stream_fence().
template <typename T, int kCount>
PYG_SPARSE_INLINE void stream(T* to, Lanes<Accumulate<T>, kCount> lanes) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    stream_bits(to, lanes);
  } else {
    stream_bits(to, narrowed<T, kCount>(lanes));
  }
#else
  store<T, kCount>(to, lanes);
#endif
}

inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
