// Programmatic dependent launch (CUDA C++ programming guide): from 9.0 on, a kernel may be set up while the one before
// it in the stream ends, which hides most of a launch.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <atomic>

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

// The same, for memory that is then read by load(), whose instruction the compiler may move: it cannot go where the
// address is not known yet.
template <typename T>
__device__ void wait_for_stream(const T*& pointer) {
  wait_for_stream();
  asm volatile("" : "+l"(pointer)::"memory");
}

template <typename = void>
__global__ void probe_kernel() {}

// Whether the library's kernels wait on the current device. Those of an older PTX, compiled by the driver, do not. All
// of them are compiled for the same architectures.
inline bool kernels_wait() {
  enum class Waits : char { kUnknown, kNo, kYes };
  static std::array<std::atomic<Waits>, 64> known{};  // by device
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || device >= static_cast<int>(known.size())) return false;
  if (known[device] == Waits::kUnknown) {
    cudaFuncAttributes attributes{};
    if (cudaFuncGetAttributes(&attributes, probe_kernel<>) != cudaSuccess) return false;
    known[device] = attributes.ptxVersion >= 90 ? Waits::kYes : Waits::kNo;
  }
  return known[device] == Waits::kYes;
}

// With dynamic shared memory, of 48 KB at most.
template <typename... Parameters, typename... Arguments>
int launch_staged(void (*kernel)(Parameters...), unsigned blocks, int threads, size_t shared_bytes, void* stream,
                  const Arguments&... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = static_cast<unsigned>(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = kernels_wait() ? 1 : 0;
  const auto error = cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
  cudaGetLastError();  // it was returned, or was not this launch's
  return error;
}

template <typename... Parameters, typename... Arguments>
int launch_overlapped(void (*kernel)(Parameters...), unsigned blocks, int threads, void* stream,
                      const Arguments&... arguments) {
  return launch_staged(kernel, blocks, threads, 0, stream, arguments...);
}

}  // namespace pyg_sparse::cuda
