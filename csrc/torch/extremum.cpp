// spmm_extremum: the largest or smallest message of every row, and the position of its entry in the format. Its
// gradient selects with those positions (pyg_sparse/gradients.py).
#include "pyg_sparse/extremum.h"

#include <tuple>

#include "dense.h"
#include "memory.h"

namespace pyg_sparse::torch_binding {
namespace {

std::tuple<Tensor, Tensor> spmm_extremum(std::string format, std::vector<Tensor> layout, int64_t partials,
                                         int64_t num_rows, int64_t num_cols, Tensor x, OptionalTensor value,
                                         bool largest) {
  const FormatOps& ops = find_format(format);
  check_same_device(x, layout);
  const DType dtype = dtype_of(x, "x");
  const Tensor features = row_major(x, num_cols, "x");
  const int64_t k = features.size(1);
  STD_TORCH_CHECK(!value || ops.has_slots(layout) || ops.positions(layout) == 0,
                  "value needs a plan built with edge_values=True");
  const Vector values(value, value ? value->numel() : 0, x.scalar_type(), x, "value");

  Tensor out = new_result(x, {num_rows, k});
  Tensor arg = new_result(x, {num_rows, k}, ScalarType::Long);
  if (out.numel() == 0) return {out, arg};
  OptionalTensor partial, partial_arg;
  if (partials > 0) {
    partial = new_result(x, {partials, k}, scale_type(dtype));
    partial_arg = new_result(x, {partials, k}, ScalarType::Long);
  }
  const ExtremumArgs args{
      .dtype = dtype,
      .largest = largest,
      .k = k,
      .x = features.const_data_ptr(),
      .ldx = row_stride(features),
      .value = values.data(),
      .out = out.mutable_data_ptr(),
      .arg = static_cast<int64_t*>(arg.mutable_data_ptr()),
      .partial = partial ? partial->mutable_data_ptr() : nullptr,
      .partial_arg = partial_arg ? static_cast<int64_t*>(partial_arg->mutable_data_ptr()) : nullptr};
  ops.extremum(layout, args, out);
  return {out, arg};
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_FRAGMENT(pyg_sparse, m) {
  m.def(
      "spmm_extremum(str format, Tensor[] layout, int partials, int num_rows, int num_cols, Tensor x, Tensor? value, "
      "bool largest) -> (Tensor out, Tensor arg)");
}

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) {
  m.impl("spmm_extremum", TORCH_BOX(&pyg_sparse::torch_binding::spmm_extremum));
}

#ifdef PYG_SPARSE_CUDA
STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CUDA, m) {
  m.impl("spmm_extremum", TORCH_BOX(&pyg_sparse::torch_binding::spmm_extremum));
}
#endif
