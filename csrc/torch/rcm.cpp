// rcm: an order of rows. Only the planner calls it, with rows whose indices are in range.
#include "pyg_sparse/rcm.h"

#include "registry.h"

namespace pyg_sparse::torch_binding {
namespace {

Tensor rcm(Tensor rowptr, Tensor row, Tensor col) {
  const std::vector<Tensor> operands{rowptr, row, col};
  const LayoutReader in("rcm", operands, 3);
  STD_TORCH_CHECK(in.size(0) == in.size(1) + 1, "rowptr must have ", in.size(1) + 1, " entries, not ", in.size(0));
  Tensor order = torch::stable::new_empty(rowptr, {in.size(1)});
  cpu::rcm({in.size(1), in.int64(0), in.int32(1), in.int32(2), static_cast<int64_t*>(order.mutable_data_ptr())});
  return order;
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) { m.impl("rcm", TORCH_BOX(&pyg_sparse::torch_binding::rcm)); }
