#include "elements.cuh"
#include "pyg_sparse/scale.h"
#include "vec.cuh"

namespace pyg_sparse::cuda {
namespace {

template <typename T>
__global__ void scale_kernel(ScaleArgs args) {
  for_each_element(args.rows, args.k, [&](int64_t i, int64_t k) {
    const Accumulate<T> scale = static_cast<const Accumulate<T>*>(args.scale)[i];
    const T value = static_cast<const T*>(args.x)[i * args.ldx + k];
    static_cast<T*>(args.out)[i * args.k + k] = narrow<T>(scale * widen(value));
  });
}

}  // namespace

int scale_rows(const ScaleArgs& args, void* stream) {
  return visit_dtype(args.dtype, [&](auto tag) {
    return launch_elements(scale_kernel<typename decltype(tag)::type>, args.rows * args.k, stream, args);
  });
}

}  // namespace pyg_sparse::cuda
