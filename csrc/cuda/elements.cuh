// Kernels with a thread per element of a row-major matrix.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace pyg_sparse::cuda {

constexpr int kElementBlock = 256;

template <typename Body>
__device__ void for_each_element(int64_t rows, int64_t k, const Body& body) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kElementBlock;
  for (int64_t e = blockIdx.x * static_cast<int64_t>(kElementBlock) + threadIdx.x; e < rows * k; e += stride) {
    const int64_t i = e / k;
    body(i, e - i * k);
  }
}

template <typename Kernel, typename... Args>
int launch_elements(Kernel kernel, int64_t elements, void* stream, const Args&... args) {
  constexpr int64_t kMaxBlocks = 1 << 20;  // beyond, each thread takes several elements
  if (elements == 0) return cudaSuccess;
  const int64_t blocks = std::min((elements + kElementBlock - 1) / kElementBlock, kMaxBlocks);
  kernel<<<static_cast<unsigned>(blocks), kElementBlock, 0, static_cast<cudaStream_t>(stream)>>>(args...);
  return cudaGetLastError();
}

}  // namespace pyg_sparse::cuda
