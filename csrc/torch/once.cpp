// each_once: a check of what was read from a file. On CUDA, torch's bincount does this work
// (pyg_sparse/formats/checks.py).
#include "pyg_sparse/once.h"

#include <optional>

#include "registry.h"

namespace pyg_sparse::torch_binding {
namespace {

bool each_once(Tensor index, std::optional<Tensor> col, int64_t size) {
  STD_TORCH_CHECK(size >= 0, "size must not be negative");
  STD_TORCH_CHECK(!col || (col->scalar_type() == ScalarType::Int && col->numel() == index.numel()),
                  "col must be int32, of index's size");
  const bool wide = index.scalar_type() == ScalarType::Long;
  STD_TORCH_CHECK(wide || index.scalar_type() == ScalarType::Int, "index must be int32 or int64");
  const Tensor own = torch::stable::contiguous(index);
  const Tensor columns = col ? torch::stable::contiguous(*col) : own;
  const auto* where = col ? static_cast<const int32_t*>(columns.const_data_ptr()) : nullptr;
  const auto check = [&]<typename Index>(const Index* values) {
    return cpu::each_once(values, where, own.numel(), size);
  };
  return wide ? check(static_cast<const int64_t*>(own.const_data_ptr()))
              : check(static_cast<const int32_t*>(own.const_data_ptr()));
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) { m.impl("each_once", TORCH_BOX(&pyg_sparse::torch_binding::each_once)); }
