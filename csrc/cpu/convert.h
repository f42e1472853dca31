// Conversions between storage types and accumulators, written so that loops over them vectorize without F16C.
#pragma once

#include <bit>
#include <cstdint>

#include "pyg_sparse/dtype.h"
#include "simd.h"

namespace pyg_sparse::cpu {

PYG_SPARSE_INLINE double widen(double value) { return value; }
PYG_SPARSE_INLINE float widen(float value) { return value; }
PYG_SPARSE_INLINE float widen(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }
PYG_SPARSE_INLINE float widen(Float16 value) {
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fff) << 13;
  // The multiplication rebiases the exponent and normalizes subnormals; inf and NaN keep an all-ones exponent.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | sign);
}

// Round to nearest, ties to even.
template <typename T>
PYG_SPARSE_INLINE T narrow(Accumulate<T> value);

template <>
PYG_SPARSE_INLINE double narrow<double>(double value) {
  return value;
}
template <>
PYG_SPARSE_INLINE float narrow<float>(float value) {
  return value;
}
template <>
PYG_SPARSE_INLINE BFloat16 narrow<BFloat16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return {static_cast<uint16_t>(value != value ? 0x7fc0u : rounded)};
}
template <>
PYG_SPARSE_INLINE Float16 narrow<Float16>(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t result;
  if (magnitude > 0x7f800000u) {
    result = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {  // rounds past 65504
    result = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // subnormal: let the adder round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    result = std::bit_cast<uint32_t>(shifted) - 0x3f000000u;
  } else {
    result = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return {static_cast<uint16_t>(sign | result)};
}

}  // namespace pyg_sparse::cpu
