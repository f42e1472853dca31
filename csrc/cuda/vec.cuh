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

// kVec consecutive elements, moved by one instruction of up to 16 bytes.
template <typename T, int kVec>
struct alignas(sizeof(T) * kVec) Vec {
  static_assert(sizeof(T) * kVec <= 16, "no load is wider than 16 bytes");
  T element[kVec];
};

template <typename T>
constexpr int kFullVec = 16 / sizeof(T);

template <typename T, int kVec>
__device__ Vec<T, kVec> load(const T* from) {
  return *reinterpret_cast<const Vec<T, kVec>*>(from);
}

template <typename T, int kVec>
__device__ void store(T* to, const Vec<T, kVec>& value) {
  *reinterpret_cast<Vec<T, kVec>*>(to) = value;
}

}  // namespace pyg_sparse::cuda
