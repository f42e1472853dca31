#include "elements.cuh"
#include "pyg_sparse/order.h"
#include "row_sum.cuh"

namespace pyg_sparse::cuda {
namespace {

template <typename T>
__global__ void order_kernel(OrderArgs args) {
  for_each_element(args.positions, 1, [&](int64_t p, int64_t) {
    const T* value = static_cast<const T*>(args.value) + edge_of(args.slot, p) * args.heads;
    T* out = static_cast<T*>(args.out) + p;
    for (int64_t h = 0; h < args.heads; ++h) out[h * args.positions] = value[h];
  });
}

}  // namespace

int order_values(const OrderArgs& args, void* stream) {
  return visit_dtype(args.dtype, [&](auto tag) {
    return launch_elements(order_kernel<typename decltype(tag)::type>, args.positions, stream, args);
  });
}

}  // namespace pyg_sparse::cuda
