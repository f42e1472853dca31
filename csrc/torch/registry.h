// The formats known to the operators, by name. Each format's file registers itself.
#pragma once

#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <string>
#include <vector>

#include "pyg_sparse/extremum.h"

namespace pyg_sparse::torch_binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// The CUDA stream that torch is using on this device.
void* current_stream(int32_t device_index);

// Fewest rows or entries of width k that are worth a thread of their own.
inline int64_t rows_per_thread(int64_t k) {
  constexpr int64_t kElementsPerThread = 1 << 15;
  return std::max<int64_t>(1, kElementsPerThread / std::max<int64_t>(1, k));
}

// A format seen through its tensors: what the operators need to know, and how to run it.
struct FormatOps {
  const char* name;
  int64_t (*positions)(const std::vector<Tensor>& layout);
  bool (*has_slots)(const std::vector<Tensor>& layout);
  void (*spmm)(const std::vector<Tensor>& layout, const SpmmArgs& args, const Tensor& out);
  void (*sddmm)(const std::vector<Tensor>& layout, const SddmmArgs& args, const Tensor& out);
  void (*extremum)(const std::vector<Tensor>& layout, const ExtremumArgs& args, const Tensor& out);
};

const FormatOps& find_format(const std::string& name);
bool register_format(const FormatOps& ops);

// Checked access to a format's tensors, in the order in which its Python class lists them.
class LayoutReader {
 public:
  LayoutReader(const char* format, const std::vector<Tensor>& layout, size_t expected);
  int64_t size(size_t i) const { return layout_[i].size(0); }
  const int32_t* int32(size_t i) const { return static_cast<const int32_t*>(typed(i, ScalarType::Int)); }
  const int64_t* int64(size_t i) const { return static_cast<const int64_t*>(typed(i, ScalarType::Long)); }
  SlotMap slots(size_t i) const;

 private:
  const void* typed(size_t i, ScalarType type) const;

  const char* format_;
  const std::vector<Tensor>& layout_;
};

}  // namespace pyg_sparse::torch_binding
