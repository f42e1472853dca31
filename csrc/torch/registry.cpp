#include "registry.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

namespace pyg_sparse::torch_binding {
namespace {

std::vector<FormatOps>& formats() {
  static std::vector<FormatOps> table;
  return table;
}

}  // namespace

bool register_format(const FormatOps& ops) {
  formats().push_back(ops);
  return true;
}

const FormatOps& find_format(const std::string& name) {
  for (const FormatOps& ops : formats()) {
    if (name == ops.name) return ops;
  }
  std::string known;
  for (const FormatOps& ops : formats()) known += known.empty() ? ops.name : std::string(", ") + ops.name;
  STD_TORCH_CHECK(false, "format '", name, "' is unknown; compiled formats: ", known);
}

void* current_stream(int32_t device_index) {
  void* stream = nullptr;
#ifdef PYG_SPARSE_CUDA
  STD_TORCH_CHECK(aoti_torch_get_current_cuda_stream(device_index, &stream) == AOTI_TORCH_SUCCESS,
                  "torch has no current CUDA stream on device ", device_index);
#else
  static_cast<void>(device_index);
#endif
  return stream;
}

LayoutReader::LayoutReader(const char* format, const std::vector<Tensor>& layout, size_t expected)
    : format_(format), layout_(layout) {
  STD_TORCH_CHECK(layout.size() == expected, "layout of format '", format, "' has ", layout.size(), " tensors, not ",
                  expected);
}

const void* LayoutReader::typed(size_t i, ScalarType type) const {
  const Tensor& tensor = layout_[i];
  STD_TORCH_CHECK(tensor.scalar_type() == type, "layout[", i, "] of format '", format_, "' has the wrong dtype");
  STD_TORCH_CHECK(tensor.is_contiguous(), "layout[", i, "] of format '", format_, "' is not contiguous");
  STD_TORCH_CHECK(
      tensor.get_device_index() == layout_[0].get_device_index() && tensor.is_cuda() == layout_[0].is_cuda(), "layout[",
      i, "] of format '", format_, "' is on another device than layout[0]");
  return tensor.const_data_ptr();
}

SlotMap LayoutReader::slots(size_t i) const {
  const bool wide = layout_[i].scalar_type() == ScalarType::Long;
  const void* edge = wide ? static_cast<const void*>(int64(i)) : static_cast<const void*>(int32(i));
  return {layout_[i].numel() > 0 ? edge : nullptr, wide};
}

}  // namespace pyg_sparse::torch_binding
