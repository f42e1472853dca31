#include <algorithm>
#include <limits>

#include "epilogue.cuh"
#include "overlap.cuh"
#include "place.cuh"
#include "pyg_sparse/combine.h"

namespace pyg_sparse::cuda {
namespace {

// How a block's threads divide: `across` lie across the features of a row, and `deep` share its partials.
struct CombineGrid {
  int across, deep;
  int64_t blocks_per_row;  // of rows that share blocks, and features across
};

// Every thread adds its share of the partials in order, then the shares are added in order: the result repeats bit for
// bit.
template <typename T>
__global__ __launch_bounds__(kBlock, 1) void combine_kernel(SharedRows shared, SpmmArgs args, CombineGrid grid) {
  using A = Accumulate<T>;
  __shared__ A shares[kBlock];
  wait_for_stream();
  const int feature = threadIdx.x % grid.across, rest = threadIdx.x / grid.across;
  const int share = rest % grid.deep;
  const int64_t rows = kBlock / (grid.across * grid.deep);
  const int64_t i = blockIdx.x / grid.blocks_per_row * rows + rest / grid.deep;
  const int64_t k = blockIdx.x % grid.blocks_per_row * grid.across + feature;
  const bool there = i < shared.count && k < args.k;
  A sum = 0;
  if (there) {
    const A* partial = static_cast<const A*>(args.partial) + k;
    const int64_t end = shared.ptr[i + 1];
#pragma unroll 8
    for (int64_t p = shared.ptr[i] + share; p < end; p += grid.deep) sum += partial[p * args.k];
  }
  for (int half = grid.deep / 2; half > 0; half /= 2) {
    shares[threadIdx.x] = sum;
    __syncthreads();
    if (share < half) sum += shares[threadIdx.x + half * grid.across];
    __syncthreads();
  }
  if (!there || share != 0) return;
  A total[1] = {sum};
  write_sums<T, 1, true>(args, Target(shared.row[i], -1), k, 0, total);
}

}  // namespace

int combine(const SharedRows& shared, const SpmmArgs& args, void* stream) {
  if (shared.count == 0) return cudaSuccess;
  // Few rows of many partials are summed by many threads, as long as the device has room for them.
  constexpr int64_t kThreads = 1 << 18;
  int across = 1, deep = 1;
  while (across < kWarp && across < args.k) across *= 2;
  while (across * deep < kBlock && 2 * deep <= args.partials && shared.count * args.k * 2 * deep <= kThreads) deep *= 2;
  const int64_t rows = kBlock / (across * deep), blocks_per_row = (args.k + across - 1) / across;
  const int64_t blocks = (shared.count + rows - 1) / rows * blocks_per_row;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return visit_dtype(args.dtype, [&](auto tag) {
    return launch_overlapped(combine_kernel<typename decltype(tag)::type>, static_cast<unsigned>(blocks), kBlock,
                             stream, shared, args, CombineGrid{across, deep, blocks_per_row});
  });
}

const char* error_string(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

}  // namespace pyg_sparse::cuda
