#include "elements.cuh"
#include "pyg_sparse/combine.h"
#include "vec.cuh"

namespace pyg_sparse::cuda {
namespace {

// One thread per output element: it adds its partials in order, so the result repeats bit for bit.
template <typename T>
__global__ void combine_kernel(SharedRows shared, SpmmArgs args) {
  using A = Accumulate<T>;
  for_each_element(shared.count, args.k, [&](int64_t i, int64_t k) {
    const int64_t row = shared.row[i];
    const A* partial = static_cast<const A*>(args.partial) + k;
    A sum = 0;
#pragma unroll 8
    for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) sum += partial[p * args.k];
    if (args.row_scale) sum *= static_cast<const A*>(args.row_scale)[row];
    if (args.self_scale) {
      sum +=
          static_cast<const A*>(args.self_scale)[row] * widen(static_cast<const T*>(args.self)[row * args.ldself + k]);
    }
    if (args.bias) sum += static_cast<const A*>(args.bias)[k];
    if (args.relu) sum = relu(sum);
    static_cast<T*>(args.out)[row * args.k + k] = narrow<T>(sum);
  });
}

}  // namespace

int combine(const SharedRows& shared, const SpmmArgs& args, void* stream) {
  return visit_dtype(args.dtype, [&](auto tag) {
    return launch_elements(combine_kernel<typename decltype(tag)::type>, shared.count * args.k, stream, shared, args);
  });
}

const char* error_string(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // namespace pyg_sparse::cuda
