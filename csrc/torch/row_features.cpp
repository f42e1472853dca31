// row_features: one pass over the entries for the planner. Only pyg_sparse/planner calls it, with rows whose indices
// are in range and a weight for every column.
#include "pyg_sparse/row_features.h"

#include "run_format.h"

namespace pyg_sparse::torch_binding {
namespace {

Tensor row_features(Tensor rowptr, Tensor row, Tensor col, Tensor weight) {
  const std::vector<Tensor> operands{rowptr, row, col, weight};
  const LayoutReader in("row_features", operands, 4);
  const int64_t rows = in.size(1);
  STD_TORCH_CHECK(in.size(0) == rows + 1, "rowptr must have ", rows + 1, " entries, not ", in.size(0));
  Tensor result = torch::stable::new_empty(rowptr, {4, rows});
  auto* out = static_cast<int64_t*>(result.mutable_data_ptr());
  const RowFeaturesArgs args{.rows = rows,
                             .rowptr = in.int64(0),
                             .row = in.int32(1),
                             .col = in.int32(2),
                             .weight = in.int64(3),
                             .low = out,
                             .high = out + rows,
                             .diagonal = out + 2 * rows,
                             .total = out + 3 * rows};
#ifdef PYG_SPARSE_CUDA
  if (rowptr.is_cuda()) {
    const torch::stable::accelerator::DeviceGuard guard(rowptr.get_device_index());
    check_cuda(cuda::row_features(args, current_stream(rowptr.get_device_index())), "row_features");
    return result;
  }
#endif
  for_item_ranges(args, 1, [&](int64_t first, int64_t last) { cpu::row_features(args, first, last); });
  return result;
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) {
  m.impl("row_features", TORCH_BOX(&pyg_sparse::torch_binding::row_features));
}

#ifdef PYG_SPARSE_CUDA
STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CUDA, m) {
  m.impl("row_features", TORCH_BOX(&pyg_sparse::torch_binding::row_features));
}
#endif
