#include <cuda_runtime.h>

#include <algorithm>

#include "pyg_sparse/fingerprint.h"

namespace pyg_sparse::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarp;
constexpr int64_t kMaxBlocks = 2048;  // enough for every device, and few atomics
static_assert(kWarps <= kWarp, "one warp adds up the sums of all");

__device__ Fingerprint sum_of_warp(Fingerprint sum) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    sum += {__shfl_down_sync(~0u, sum.low, step), __shfl_down_sync(~0u, sum.high, step)};
  }
  return sum;
}

template <typename Index>
__global__ void fingerprint_kernel(FingerprintArgs args, unsigned long long* sums) {
  __shared__ Fingerprint sum_of[kWarps];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  Fingerprint sum{};
  const int64_t step = static_cast<int64_t>(gridDim.x) * kBlock;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x; i < args.pairs; i += step) {
    const int64_t at = i * args.stride;
    sum += fingerprint_of(static_cast<const Index*>(args.first)[at], static_cast<const Index*>(args.second)[at], i);
  }
  sum = sum_of_warp(sum);
  if (lane == 0) sum_of[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = sum_of_warp(lane < kWarps ? sum_of[lane] : Fingerprint{});
  if (lane > 0) return;
  atomicAdd(sums, sum.low);  // unsigned sums are the same in every order
  atomicAdd(sums + 1, sum.high);
}

}  // namespace

int fingerprint(const FingerprintArgs& args, uint64_t* sums, void* stream) {
  if (args.pairs == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>(std::min((args.pairs + kBlock - 1) / kBlock, kMaxBlocks));
  const auto kernel = args.wide ? fingerprint_kernel<int64_t> : fingerprint_kernel<int32_t>;
  kernel<<<blocks, kBlock, 0, static_cast<cudaStream_t>(stream)>>>(args, reinterpret_cast<unsigned long long*>(sums));
  return cudaGetLastError();
}

}  // namespace pyg_sparse::cuda
