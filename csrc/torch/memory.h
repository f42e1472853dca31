// Memory for results. On Linux's CPUs large results take turns in the same memory: new memory is handed out and cleared
// page by page, which takes longer than many products.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <initializer_list>
#include <optional>

namespace pyg_sparse::torch_binding {

// A contiguous tensor on like's device, whose elements are about to be written, of like's dtype or another.
torch::stable::Tensor new_result(const torch::stable::Tensor& like, std::initializer_list<int64_t> sizes,
                                 std::optional<torch::headeronly::ScalarType> dtype = std::nullopt);

}  // namespace pyg_sparse::torch_binding
