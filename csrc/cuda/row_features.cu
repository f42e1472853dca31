#include <cuda_runtime.h>

#include "pyg_sparse/row_features.h"

namespace pyg_sparse::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBlock = 256;
constexpr int kWarps = kBlock / kWarp;
constexpr int64_t kLong = 2048;  // entries of a row from which on a whole block reads it

// Lane 0 gets that of all lanes.
__device__ RowFeatures of_warp(RowFeatures found) {
  for (int half = kWarp / 2; half > 0; half /= 2) {
    RowFeatures other;
    other.low = __shfl_down_sync(~0u, found.low, half);
    other.high = __shfl_down_sync(~0u, found.high, half);
    other.diagonal = __shfl_down_sync(~0u, static_cast<long long>(found.diagonal), half);
    other.weight = __shfl_down_sync(~0u, static_cast<long long>(found.weight), half);
    found.add(other);
  }
  return found;
}

// A block takes as many rows as it has warps: each warp a row, then all of them together each long row.
__global__ void __launch_bounds__(kBlock) row_features_kernel(RowFeaturesArgs args) {
  // Raw words: shared memory has no constructors.
  __shared__ int32_t low[kWarps], high[kWarps];
  __shared__ int64_t diagonal[kWarps], weight[kWarps];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kWarps;
  const int64_t last = first + kWarps < args.rows ? first + kWarps : args.rows;
  if (first + warp < last) {
    const int64_t begin = args.rowptr[first + warp], end = args.rowptr[first + warp + 1];
    if (end - begin < kLong) {
      const int32_t id = args.row[first + warp];
      const RowFeatures found = of_warp(args.of(id, begin + lane, end, kWarp));
      if (lane == 0) args.store(id, found);
    }
  }
  for (int64_t r = first; r < last; ++r) {
    const int64_t begin = args.rowptr[r], end = args.rowptr[r + 1];
    if (end - begin < kLong) continue;  // the same for all threads of the block
    const int32_t id = args.row[r];
    const RowFeatures found = of_warp(args.of(id, begin + threadIdx.x, end, kBlock));
    if (lane == 0) {
      low[warp] = found.low;
      high[warp] = found.high;
      diagonal[warp] = found.diagonal;
      weight[warp] = found.weight;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      RowFeatures all;
      for (int w = 0; w < kWarps; ++w) all.add({low[w], high[w], diagonal[w], weight[w]});
      args.store(id, all);
    }
    __syncthreads();  // before the next long row overwrites the words
  }
}

}  // namespace

int row_features(const RowFeaturesArgs& args, void* stream) {
  if (args.rows == 0) return cudaSuccess;
  const int64_t blocks = (args.rows + kWarps - 1) / kWarps;  // fewer than 2^29: row ids are int32
  row_features_kernel<<<static_cast<unsigned>(blocks), kBlock, 0, static_cast<cudaStream_t>(stream)>>>(args);
  return cudaGetLastError();
}

}  // namespace pyg_sparse::cuda
