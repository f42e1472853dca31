// vote: a round of label propagation. Only pyg_sparse/order.py calls it, with rows whose indices are in range.
#include "pyg_sparse/vote.h"

#include "check_cuda.h"
#include "registry.h"

namespace pyg_sparse::torch_binding {
namespace {

Tensor vote(Tensor rowptr, Tensor row, Tensor col, Tensor label, int64_t seed) {
  const std::vector<Tensor> operands{rowptr, row, col, label};
  const LayoutReader in("vote", operands, 4);
  STD_TORCH_CHECK(in.size(0) == in.size(1) + 1, "rowptr must have ", in.size(1) + 1, " entries, not ", in.size(0));
  Tensor result = torch::stable::clone(label);
  const VoteArgs args{.rows = in.size(1),
                      .rowptr = in.int64(0),
                      .row = in.int32(1),
                      .col = in.int32(2),
                      .label = in.int32(3),
                      .new_label = static_cast<int32_t*>(result.mutable_data_ptr()),
                      .seed = static_cast<uint32_t>(seed)};
#ifdef PYG_SPARSE_CUDA
  if (label.is_cuda()) {
    const torch::stable::accelerator::DeviceGuard guard(label.get_device_index());
    check_cuda(cuda::vote(args, current_stream(label.get_device_index())), "vote");
    return result;
  }
#endif
  torch::stable::parallel_for(0, args.rows, rows_per_thread(64),
                              [&](int64_t first, int64_t last) { cpu::vote(args, first, last); });
  return result;
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) { m.impl("vote", TORCH_BOX(&pyg_sparse::torch_binding::vote)); }

#ifdef PYG_SPARSE_CUDA
STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CUDA, m) { m.impl("vote", TORCH_BOX(&pyg_sparse::torch_binding::vote)); }
#endif
