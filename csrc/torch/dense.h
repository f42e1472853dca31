// Checked access to the dense operands of the operators.
#pragma once

#include <optional>

#include "registry.h"

namespace pyg_sparse::torch_binding {

using OptionalTensor = std::optional<Tensor>;

inline DType dtype_of(const Tensor& tensor, const char* name) {
  switch (tensor.scalar_type()) {
    case ScalarType::Double:
      return DType::kFloat64;
    case ScalarType::Float:
      return DType::kFloat32;
    case ScalarType::BFloat16:
      return DType::kBFloat16;
    case ScalarType::Half:
      return DType::kFloat16;
    default:
      STD_TORCH_CHECK(false, name, " must be float64, float32, bfloat16 or float16");
  }
}

// A dense operand as the kernels read it: unit stride inside a row, copied only if it is not already so.
inline Tensor row_major(const Tensor& tensor, int64_t rows, const char* name) {
  STD_TORCH_CHECK(tensor.dim() == 2, name, " must have 2 dimensions, not ", tensor.dim());
  STD_TORCH_CHECK(tensor.size(0) == rows, name, " must have ", rows, " rows, not ", tensor.size(0));
  constexpr int64_t kStrides = int64_t{1} << 29;  // in elements: 2^32 bytes at most
  STD_TORCH_CHECK(tensor.size(1) < kStrides, name, " has ", tensor.size(1), " columns; fewer than 2^29 are allowed");
  const bool unit = tensor.size(1) <= 1 || tensor.stride(1) == 1;
  const bool near = tensor.size(0) <= 1 || (tensor.stride(0) >= 0 && tensor.stride(0) < kStrides);
  return unit && near ? tensor : torch::stable::contiguous(tensor);
}

// An optional vector of known length and dtype; absent is null. Holds a contiguous copy alive where one is needed.
class Vector {
 public:
  Vector(const OptionalTensor& tensor, int64_t size, ScalarType dtype, const Tensor& like, const char* name) {
    if (!tensor) return;
    STD_TORCH_CHECK(tensor->dim() == 1 && tensor->size(0) == size, name, " must have shape [", size, "]");
    STD_TORCH_CHECK(tensor->scalar_type() == dtype, name, " has the wrong dtype");
    STD_TORCH_CHECK(tensor->is_cuda() == like.is_cuda() && tensor->get_device_index() == like.get_device_index(), name,
                    " is on another device than the features");
    held_ = torch::stable::contiguous(*tensor);
  }
  // Null for an absent vector only: an empty one has no entry that could be read.
  const void* data() const { return held_ ? held_->const_data_ptr() : nullptr; }

 private:
  OptionalTensor held_;
};

inline ScalarType scale_type(DType dtype) { return dtype == DType::kFloat64 ? ScalarType::Double : ScalarType::Float; }

inline void check_same_device(const Tensor& tensor, const std::vector<Tensor>& layout) {
  STD_TORCH_CHECK(!layout.empty(), "layout holds no tensors");
  STD_TORCH_CHECK(tensor.is_cuda() == layout[0].is_cuda() && tensor.get_device_index() == layout[0].get_device_index(),
                  "the features and the plan are on different devices");
}

inline int64_t row_stride(const Tensor& tensor) { return tensor.size(0) > 1 ? tensor.stride(0) : tensor.size(1); }

}  // namespace pyg_sparse::torch_binding
