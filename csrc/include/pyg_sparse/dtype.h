// Element types of the dense operands, and the fold from a run-time DType to a compile-time type.
#pragma once

#include <cstdint>
#include <type_traits>

namespace pyg_sparse {

enum class DType { kFloat64, kFloat32, kBFloat16, kFloat16 };

// 16-bit storage only: each backend brings its own conversions.
struct BFloat16 {
  uint16_t bits;
};
struct Float16 {
  uint16_t bits;
};

// Sums and scales: fp64 stays fp64, everything else is fp32.
template <typename T>
using Accumulate = std::conditional_t<std::is_same_v<T, double>, double, float>;

inline int64_t size_of(DType dtype) { return dtype == DType::kFloat64 ? 8 : dtype == DType::kFloat32 ? 4 : 2; }
inline int64_t accumulate_size(DType dtype) { return dtype == DType::kFloat64 ? 8 : 4; }

template <typename T>
struct Type {
  using type = T;
};

// visit_dtype(dtype, [&](auto tag) { using T = typename decltype(tag)::type; ... })
template <typename Visitor>
auto visit_dtype(DType dtype, Visitor&& visitor) {
  switch (dtype) {
    case DType::kFloat64:
      return visitor(Type<double>{});
    case DType::kFloat32:
      return visitor(Type<float>{});
    case DType::kBFloat16:
      return visitor(Type<BFloat16>{});
    default:
      return visitor(Type<Float16>{});
  }
}

}  // namespace pyg_sparse
