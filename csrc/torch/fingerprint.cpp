// fingerprint: a hash of the edges of a graph (pyg_sparse/planner/fingerprint.py) and of the words of a record on disk.
#include "pyg_sparse/fingerprint.h"

#include <atomic>

#include "check_cuda.h"
#include "registry.h"

namespace pyg_sparse::torch_binding {
namespace {

const void* row_of(const Tensor& pairs, int64_t row) {
  const int64_t bytes = pairs.scalar_type() == ScalarType::Long ? 8 : 4;
  return static_cast<const char*>(pairs.const_data_ptr()) + row * pairs.stride(0) * bytes;
}

// int64 [2] on the device of pairs, which are [2, n] with any strides.
Tensor fingerprint(Tensor pairs) {
  STD_TORCH_CHECK(pairs.dim() == 2 && pairs.size(0) == 2, "pairs must have shape [2, n]");
  const bool wide = pairs.scalar_type() == ScalarType::Long;
  STD_TORCH_CHECK(wide || pairs.scalar_type() == ScalarType::Int, "pairs must be int32 or int64");
  Tensor result = torch::stable::new_zeros(pairs, {2}, ScalarType::Long);
  const FingerprintArgs args{pairs.size(1), row_of(pairs, 0), row_of(pairs, 1), pairs.stride(1), wide};
  auto* sums = static_cast<uint64_t*>(result.mutable_data_ptr());
#ifdef PYG_SPARSE_CUDA
  if (pairs.is_cuda()) {
    const torch::stable::accelerator::DeviceGuard guard(pairs.get_device_index());
    check_cuda(cuda::fingerprint(args, sums, current_stream(pairs.get_device_index())), "fingerprint");
    return result;
  }
#endif
  constexpr int64_t kPairsPerThread = 1 << 14;
  torch::stable::parallel_for(0, args.pairs, kPairsPerThread, [&](int64_t first, int64_t last) {
    const Fingerprint sum = cpu::fingerprint(args, first, last);
    std::atomic_ref(sums[0]) += sum.low;
    std::atomic_ref(sums[1]) += sum.high;
  });
  return result;
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) {
  m.impl("fingerprint", TORCH_BOX(&pyg_sparse::torch_binding::fingerprint));
}

#ifdef PYG_SPARSE_CUDA
STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CUDA, m) {
  m.impl("fingerprint", TORCH_BOX(&pyg_sparse::torch_binding::fingerprint));
}
#endif
