// Vector loads of feature rows, widened to the accumulator type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "pyg_sparse/dtype.h"

namespace pyg_sparse::cuda {

__device__ inline double widen(double value) { return value; }
__device__ inline float widen(float value) { return value; }
__device__ inline float widen(BFloat16 value) { return __bfloat162float(__ushort_as_bfloat16(value.bits)); }
__device__ inline float widen(Float16 value) { return __half2float(__ushort_as_half(value.bits)); }

template <typename T>
__device__ T narrow(Accumulate<T> value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {__bfloat16_as_ushort(__float2bfloat16(value))};
  } else if constexpr (std::is_same_v<T, Float16>) {
    return {__half_as_ushort(__float2half(value))};
  } else {
    return value;
  }
}

// NaN stays NaN, as in torch.
template <typename A>
__device__ A relu(A value) {
  return value < A(0) ? A(0) : value;
}

// kVec consecutive elements, moved by one instruction of up to 16 bytes. They are kept as 32-bit words: 16-bit elements
// held one by one would be unpacked and packed again at every select.
template <typename T, int kVec>
struct alignas(sizeof(T) * kVec) Vec {
  static_assert(sizeof(T) * kVec <= 16, "no load is wider than 16 bytes");
  static_assert(sizeof(T) * kVec % 4 == 0 || kVec == 1, "several elements fill whole words");
  using Word = std::conditional_t<sizeof(T) * kVec % 4 == 0, uint32_t, uint16_t>;
  Word word[sizeof(T) * kVec / sizeof(Word)];

  __device__ Accumulate<T> operator[](int v) const {
    if constexpr (sizeof(T) == 8) {
      return __hiloint2double(static_cast<int>(word[2 * v + 1]), static_cast<int>(word[2 * v]));
    } else if constexpr (sizeof(T) == 4) {
      return __uint_as_float(word[v]);
    } else if constexpr (kVec == 1) {
      return widen(T{word[0]});
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      return __uint_as_float(v % 2 ? word[v / 2] & 0xffff0000u : word[v / 2] << 16);
    } else {
      return widen(T{static_cast<uint16_t>(v % 2 ? word[v / 2] >> 16 : word[v / 2] & 0xffffu)});
    }
  }
};

template <typename T>
constexpr int kFullVec = 16 / sizeof(T);

template <typename T, int kVec>
struct WordOf {
  static constexpr int kBytes = sizeof(T) * kVec;
  using Type = std::conditional_t<
      kBytes == 16, uint4,
      std::conditional_t<kBytes == 8, uint2, std::conditional_t<kBytes == 4, unsigned, unsigned short>>>;
  static_assert(sizeof(Type) == kBytes);
};

// From memory that no thread of the kernel writes, nor a kernel before it still does: wait_for_stream(pointer).
template <typename T, int kVec>
__device__ Vec<T, kVec> load(const T* from) {
  return __builtin_bit_cast(Vec<T, kVec>, __ldg(reinterpret_cast<const typename WordOf<T, kVec>::Type*>(from)));
}

// The same from any memory, in the order of the program.
template <typename T, int kVec>
__device__ Vec<T, kVec> load_in_order(const T* from) {
  return __builtin_bit_cast(Vec<T, kVec>, *reinterpret_cast<const typename WordOf<T, kVec>::Type*>(from));
}

// An index or a value that a slice of the product reads once: it leaves the cache to rows of features.
template <typename T>
__device__ T load_once(const T* from) {
  return __builtin_bit_cast(T, __ldcs(reinterpret_cast<const typename WordOf<T, 1>::Type*>(from)));
}

// Rounds and stores kVec consecutive elements.
template <typename T, int kVec>
__device__ void store(T* to, const Accumulate<T> (&value)[kVec]) {
  struct alignas(sizeof(T) * kVec) Elements {
    T element[kVec];
  } elements;
#pragma unroll
  for (int v = 0; v < kVec; ++v) elements.element[v] = narrow<T>(value[v]);
  *reinterpret_cast<Elements*>(to) = elements;
}

}  // namespace pyg_sparse::cuda
