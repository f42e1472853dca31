// Programmatic dependent launch (CUDA C++ programming guide): from 9.0 on, a kernel may be set up while the one before
// it in the stream ends, which hides most of a launch.
#pragma once

#include <cuda_runtime.h>

namespace pyg_sparse::cuda {

// Every kernel launched by launch_overlapped calls this before it reads what kernels write, or writes. A plan's own
// arrays may be read before: no kernel that writes them is still running when a plan is first used
// (pyg_sparse/plan.py).
__device__ inline void wait_for_stream() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
}

template <typename... Parameters, typename... Arguments>
int launch_overlapped(void (*kernel)(Parameters...), unsigned blocks, int threads, void* stream,
                      const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = static_cast<unsigned>(threads);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  return cudaGetLastError();
}

}  // namespace pyg_sparse::cuda
