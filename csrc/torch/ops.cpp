// Schemas and entry points of the operators. Python adds the fakes and the gradients (pyg_sparse/autograd.py,
// eager.py).
#include "check_cuda.h"
#include "dense.h"
#include "memory.h"
#include "pyg_sparse/cpu.h"

namespace pyg_sparse::torch_binding {
namespace {

Tensor scaled_rows(const Tensor& x, const Vector& scale, DType dtype) {
  Tensor out = new_result(x, {x.size(0), x.size(1)});
  const ScaleArgs args{
      dtype, x.size(0), x.size(1), x.const_data_ptr(), row_stride(x), scale.data(), out.mutable_data_ptr()};
#ifdef PYG_SPARSE_CUDA
  if (x.is_cuda()) {
    const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
    check_cuda(cuda::scale_rows(args, current_stream(x.get_device_index())), "spmm (col_scale)");
    return out;
  }
#endif
  torch::stable::parallel_for(0, args.rows, rows_per_thread(args.k), [&](int64_t first, int64_t last) {
    cpu::instruction_set().kernels->scale_rows(args, first, last);
  });
  return out;
}

// How the caller's edges are sorted, if they are.
constexpr const char* kByTarget = "by target";
constexpr const char* kBySource = "by source";

// t_format, t_layout, t_partials and the order of edges are for the gradient alone. So is t_value, but where it is
// given, value is in the format's order of positions, as t_value is in the transpose's.
Tensor spmm(std::string format, std::vector<Tensor> layout, int64_t partials, std::string t_format,
            std::vector<Tensor> t_layout, int64_t, int64_t num_rows, int64_t num_cols, Tensor x, OptionalTensor value,
            OptionalTensor t_value, OptionalTensor row_scale, OptionalTensor col_scale, OptionalTensor self_scale,
            OptionalTensor bias, bool relu, std::string) {
  const FormatOps& ops = find_format(format);
  check_same_device(x, layout);
  const DType dtype = dtype_of(x, "x");
  const ScalarType scale = scale_type(dtype);
  const Tensor features = row_major(x, num_cols, "x");
  const int64_t k = features.size(1);
  const bool stored = t_value.has_value();
  STD_TORCH_CHECK(!stored || (value && value->dim() == 1 && value->numel() == ops.positions(layout)),
                  "with t_value, value must have shape [", ops.positions(layout), "]");
  if (stored && !t_layout.empty()) {
    const int64_t t_positions = find_format(t_format).positions(t_layout);
    STD_TORCH_CHECK(t_value->dim() == 1 && t_value->numel() == t_positions, "t_value must have shape [", t_positions,
                    "]");
  }
  STD_TORCH_CHECK(!value || stored || ops.has_slots(layout) || ops.positions(layout) == 0,
                  "value needs a plan built with edge_values=True");
  const int64_t heads = value && value->dim() == 2 ? value->size(1) : 1;
  STD_TORCH_CHECK(heads > 0 && k % heads == 0, "the width of x, ", k, ", must be a multiple of value's ", heads,
                  " heads");
  STD_TORCH_CHECK(!self_scale || num_rows == num_cols, "self_scale needs a square adjacency, not ", num_rows, " x ",
                  num_cols);
  const OptionalTensor flat = value && value->dim() == 2 ? torch::stable::flatten(*value) : value;
  const Vector values(flat, flat ? flat->numel() : 0, x.scalar_type(), x, "value");
  const Vector row_scales(row_scale, num_rows, scale, x, "row_scale");
  const Vector col_scales(col_scale, num_cols, scale, x, "col_scale");
  const Vector self_scales(self_scale, num_rows, scale, x, "self_scale");
  const Vector biases(bias, k, scale, x, "bias");

  Tensor out = new_result(x, {num_rows, k});
  if (out.numel() == 0) return out;
  OptionalTensor partial;
  if (partials > 0) partial = new_result(x, {partials, k}, scale);
  // A column's scale is read once per entry or, where x is scaled first, once. fp16 features are not: their scaled
  // values could overflow.
  constexpr int64_t kEntriesPerColumn = 4;
  const bool scale_first =
      col_scale && dtype != DType::kFloat16 && ops.positions(layout) >= kEntriesPerColumn * num_cols;
  const Tensor source = scale_first ? scaled_rows(features, col_scales, dtype) : features;
  const SpmmArgs args{.dtype = dtype,
                      .k = k,
                      .heads = heads,
                      .num_cols = num_cols,
                      .x = source.const_data_ptr(),
                      .ldx = row_stride(source),
                      .self = features.const_data_ptr(),
                      .ldself = row_stride(features),
                      .out = out.mutable_data_ptr(),
                      .value = values.data(),
                      .stored = stored,
                      .positions = ops.positions(layout),
                      .row_scale = row_scales.data(),
                      .col_scale = scale_first ? nullptr : col_scales.data(),
                      .self_scale = self_scales.data(),
                      .bias = biases.data(),
                      .relu = relu,
                      .partial = partial ? partial->mutable_data_ptr() : nullptr,
                      .partials = partials};
  ops.spmm(layout, args, out);
  return out;
}

Tensor sddmm(std::string format, std::vector<Tensor> layout, int64_t partials, std::string t_format,
             std::vector<Tensor> t_layout, int64_t t_partials, int64_t num_rows, int64_t num_cols, int64_t num_edges,
             int64_t heads, Tensor q, Tensor k, OptionalTensor row_scale, OptionalTensor col_scale, std::string edges) {
  if (edges == kBySource) {  // the transpose's rows have their results side by side
    return sddmm(t_format, t_layout, t_partials, format, layout, partials, num_cols, num_rows, num_edges, heads, k, q,
                 col_scale, row_scale, kByTarget);
  }
  const FormatOps& ops = find_format(format);
  check_same_device(q, layout);
  check_same_device(k, layout);
  const DType dtype = dtype_of(q, "q");
  STD_TORCH_CHECK(k.scalar_type() == q.scalar_type(), "q and k must have the same dtype");
  const Tensor left = row_major(q, num_rows, "q");
  const Tensor right = row_major(k, num_cols, "k");
  const int64_t width = left.size(1);
  STD_TORCH_CHECK(width == right.size(1), "q and k must have the same width, not ", width, " and ", right.size(1));
  STD_TORCH_CHECK(heads > 0 && width % heads == 0, "the width of q, ", width,
                  ", must be a multiple of heads = ", heads);
  STD_TORCH_CHECK(num_edges == 0 || ops.has_slots(layout), "sddmm needs a plan built with edge_values=True");
  const Vector row_scales(row_scale, num_rows, scale_type(dtype), q, "row_scale");
  const Vector col_scales(col_scale, num_cols, scale_type(dtype), q, "col_scale");

  Tensor out = new_result(q, {num_edges, heads});
  if (num_edges == 0) return out;
  const SddmmArgs args{.dtype = dtype,
                       .k = width,
                       .heads = heads,
                       .q = left.const_data_ptr(),
                       .ldq = row_stride(left),
                       .key = right.const_data_ptr(),
                       .ldk = row_stride(right),
                       .out = out.mutable_data_ptr(),
                       .row_scale = row_scales.data(),
                       .col_scale = col_scales.data(),
                       .grouped = edges == kByTarget};
  ops.sddmm(layout, args, out);
  return out;
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY(pyg_sparse, m) {
  m.def(
      "spmm(str format, Tensor[] layout, int partials, str t_format, Tensor[] t_layout, int t_partials, "
      "int num_rows, int num_cols, Tensor x, Tensor? value, Tensor? t_value, Tensor? row_scale, Tensor? col_scale, "
      "Tensor? self_scale, Tensor? bias, bool relu, str edges) -> Tensor");
  m.def(
      "sddmm(str format, Tensor[] layout, int partials, str t_format, Tensor[] t_layout, int t_partials, "
      "int num_rows, int num_cols, int num_edges, int heads, Tensor q, Tensor k, Tensor? row_scale, Tensor? col_scale, "
      "str edges) -> Tensor");
  m.def("sort_by_key(Tensor key, int num_keys) -> (Tensor ptr, Tensor order)");
  m.def("vote(Tensor rowptr, Tensor row, Tensor col, Tensor label, int seed) -> Tensor");
  m.def("row_features(Tensor rowptr, Tensor row, Tensor col, Tensor weight) -> Tensor");
  m.def("fingerprint(Tensor pairs) -> Tensor");
  m.def("rcm(Tensor rowptr, Tensor row, Tensor col) -> Tensor");
  m.def("each_once(Tensor index, Tensor? col, int size) -> bool");
  m.def("build_info() -> str");
}

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) {
  m.impl("spmm", TORCH_BOX(&pyg_sparse::torch_binding::spmm));
  m.impl("sddmm", TORCH_BOX(&pyg_sparse::torch_binding::sddmm));
}

#ifdef PYG_SPARSE_CUDA
STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CUDA, m) {
  m.impl("spmm", TORCH_BOX(&pyg_sparse::torch_binding::spmm));
  m.impl("sddmm", TORCH_BOX(&pyg_sparse::torch_binding::sddmm));
}
#endif
