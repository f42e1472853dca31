#include <limits>

#include "elements.cuh"
#include "overlap.cuh"
#include "pyg_sparse/order.h"
#include "row_sum.cuh"

namespace pyg_sparse::cuda {
namespace {

template <typename T>
__global__ void gather_kernel(GatherArgs args) {
  for_each_element(args.positions, 1, [&](int64_t p, int64_t) {
    const T* from = static_cast<const T*>(args.from) + edge_of(args.slot, p) * args.heads;
    T* to = static_cast<T*>(args.to) + p;
    for (int64_t h = 0; h < args.heads; ++h) to[h * args.positions] = from[h];
  });
}

constexpr int kRowBlock = 128;
constexpr int kStaged = 3072;  // values of a row that are kept: a multiprocessor then holds as many blocks as it can

// A block a row. If the row's edges lie side by side, its values pass through shared memory, so that they are written
// in sequence.
template <typename T>
__global__ __launch_bounds__(kRowBlock, 1) void scatter_kernel(ScatterArgs args) {
  constexpr long long kNone = std::numeric_limits<long long>::max();
  __shared__ T staged[kStaged];
  __shared__ long long least, most;
  const int64_t begin = args.runs.rowptr[blockIdx.x], length = args.runs.rowptr[blockIdx.x + 1] - begin;
  if (length == 0) return;
  if (threadIdx.x == 0) {
    least = kNone;
    most = 0;
  }
  __syncthreads();
  if (length <= kStaged) {
    long long own_least = kNone, own_most = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < length; i += kRowBlock) {
      const long long edge = edge_of(args.slot, begin + i);
      own_least = min(own_least, edge);
      own_most = max(own_most, edge);
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      own_least = min(own_least, __shfl_xor_sync(~0u, own_least, offset));
      own_most = max(own_most, __shfl_xor_sync(~0u, own_most, offset));
    }
    if (threadIdx.x % kWarp == 0) {
      atomicMin(&least, own_least);
      atomicMax(&most, own_most);
    }
  }
  __syncthreads();
  wait_for_stream();
  const T* from = static_cast<const T*>(args.from) + begin;
  T* to = static_cast<T*>(args.to);
  const int64_t first = least;
  if (length > kStaged || most - first != length - 1) {
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < length; i += kRowBlock) to[edge_of(args.slot, begin + i)] = from[i];
    return;
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += kRowBlock) {
    staged[static_cast<int>(edge_of(args.slot, begin + i) - first)] = from[i];
  }
  __syncthreads();
#pragma unroll 4
  for (int i = threadIdx.x; i < length; i += kRowBlock) to[first + i] = staged[i];
}

}  // namespace

int gather_values(const GatherArgs& args, void* stream) {
  return visit_dtype(args.dtype, [&](auto tag) {
    return launch_elements(gather_kernel<typename decltype(tag)::type>, args.positions, stream, args);
  });
}

int scatter_values(const ScatterArgs& args, void* stream) {
  if (args.runs.rows == 0) return cudaSuccess;
  if (args.runs.rows > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return visit_dtype(args.dtype, [&](auto tag) {
    return launch_overlapped(scatter_kernel<typename decltype(tag)::type>, static_cast<unsigned>(args.runs.rows),
                             kRowBlock, stream, args);
  });
}

}  // namespace pyg_sparse::cuda
