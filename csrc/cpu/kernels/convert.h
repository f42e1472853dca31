// Conversions between storage types and accumulators, written so that loops over them vectorize without F16C.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "inline.h"
#include "pyg_sparse/dtype.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

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

// Round to nearest, ties to even: the bits of the 16-bit element, for a float and its own bits or for vectors of both.
template <typename T, typename Float, typename Bits>
PYG_SPARSE_INLINE Bits rounded(Float value, Bits bits) {
  Bits result;
  if constexpr (std::is_same_v<T, BFloat16>) {
    result = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return value != value ? Bits{} + 0x7fc0 : result;
  } else {
    const Bits magnitude = bits & 0x7fffffff;
    // Subnormals below 0x1p-14: the adder rounds at 2^-24.
    const Bits subnormal = __builtin_bit_cast(Bits, __builtin_bit_cast(Float, magnitude) + 0.5f) - 0x3f000000;
    result = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    result = magnitude < 0x38800000 ? subnormal : result;
    result = magnitude >= 0x477ff000 ? Bits{} + 0x7c00 : result;  // rounds past 65504
    result = magnitude > 0x7f800000 ? Bits{} + 0x7e00 : result;
    return result | ((bits >> 16) & 0x8000);
  }
}

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
  return {static_cast<uint16_t>(rounded<BFloat16>(value, std::bit_cast<uint32_t>(value)))};
}
template <>
PYG_SPARSE_INLINE Float16 narrow<Float16>(float value) {
  return {static_cast<uint16_t>(rounded<Float16>(value, std::bit_cast<uint32_t>(value)))};
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
