#include <cuda_runtime.h>

#include <algorithm>

#include "pyg_sparse/combine.h"
#include "vec.cuh"

namespace pyg_sparse::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1 << 20;

// One thread per output element: it adds its partials in order, so the result repeats bit for bit.
template <typename T>
__global__ void combine_kernel(SharedRows shared, SpmmArgs args) {
  using A = Accumulate<T>;
  const int64_t elements = shared.count * args.k;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kThreads;
  for (int64_t e = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x; e < elements; e += stride) {
    const int64_t i = e / args.k, k = e - i * args.k;
    const int64_t row = shared.row[i];
    const A* partial = static_cast<const A*>(args.partial) + k;
    A sum = 0;
#pragma unroll 8
    for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) sum += partial[p * args.k];
    if (args.row_scale) sum *= static_cast<const A*>(args.row_scale)[row];
    if (args.self_scale) {
      sum += static_cast<const A*>(args.self_scale)[row] * widen(static_cast<const T*>(args.x)[row * args.ldx + k]);
    }
    static_cast<T*>(args.out)[row * args.k + k] = narrow<T>(sum);
  }
}

}  // namespace

int combine(const SharedRows& shared, const SpmmArgs& args, void* stream) {
  const int64_t elements = shared.count * args.k;
  if (elements == 0) return cudaSuccess;
  const int64_t blocks = std::min((elements + kThreads - 1) / kThreads, kMaxBlocks);
  return visit_dtype(args.dtype, [&](auto tag) -> int {
    using T = typename decltype(tag)::type;
    combine_kernel<T><<<static_cast<unsigned>(blocks), kThreads, 0, static_cast<cudaStream_t>(stream)>>>(shared, args);
    return cudaGetLastError();
  });
}

const char* error_string(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // namespace pyg_sparse::cuda
