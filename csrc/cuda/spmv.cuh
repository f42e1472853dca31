// The product with a single feature: a block takes the entries of a tile of rows, one a thread and several at a time,
// keeps the products in shared memory, and then sums those of each row (CSR-Stream, Greathouse and Daga 2014,
// doi:10.1109/SC.2014.68). Work is balanced by entries; only of very long rows there are parts to add up.
#pragma once

#include "division.cuh"
#include "epilogue.cuh"
#include "overlap.cuh"
#include "place.cuh"
#include "pyg_sparse/csr.h"

namespace pyg_sparse::cuda {

constexpr int kTileBlock = 128;

// Rows of equal length would have their products in the same bank.
__device__ constexpr int staged_at(int entry) { return entry + entry / kWarp; }

template <typename T, bool kWeighted>
class TileSum {
 public:
  using A = Accumulate<T>;

  __device__ TileSum(const Csr& a, const SpmmArgs& args) : a_(a), args_(args), x_(static_cast<const T*>(args.x)) {}

  __device__ void run(A* staged) {
    if (blockIdx.x < a_.tile_parts) {
      const int64_t begin = a_.tile_part_ptr[blockIdx.x];
      const int count = static_cast<int>(a_.tile_part_ptr[blockIdx.x + 1] - begin);
      return sum_run(staged, begin, count, [&] { return Target(-1, static_cast<int32_t>(blockIdx.x)); });
    }
    const int64_t* tile = a_.tile_ptr + (blockIdx.x - a_.tile_parts);
    const int64_t first = tile[0];
    const int rows = static_cast<int>(tile[1] - first);
    const int64_t begin = a_.rowptr[first];
    const int count = static_cast<int>(a_.rowptr[first + rows] - begin);
    if (rows == 1) return sum_run(staged, begin, count, [&] { return Target(a_.row[first], -1); });
    int lanes = kWarp;  // of a row
    while (lanes > 1 && lanes * rows > kTileBlock) lanes /= 2;
    const int groups = kTileBlock / lanes, group = threadIdx.x / lanes, lane = threadIdx.x % lanes;
    const unsigned mask = (lanes == kWarp ? ~0u : (1u << lanes) - 1u) << (threadIdx.x % kWarp - lane);
    // Where a row's products lie, and its id.
    struct Row {
      int begin, end;
      int32_t id;
    };
    const auto load_row = [&](int row) {
      if (row >= rows) return Row{0, 0, 0};
      const int64_t* bound = a_.rowptr + first + row;
      return Row{static_cast<int>(bound[0] - begin), static_cast<int>(bound[1] - begin), a_.row[first + row]};
    };
    Row own = load_row(group);
    add_products(begin, count, [&](int entry, A product) { staged[staged_at(entry)] = product; });
    __syncthreads();
    for (int row = group; row < rows; row += groups) {
      const Row next = load_row(row + groups);
      A sum = 0;
      for (int entry = own.begin + lane; entry < own.end; entry += lanes) sum += staged[staged_at(entry)];
      for (int half = lanes / 2; half > 0; half /= 2) sum += __shfl_down_sync(mask, sum, half);
      if (lane == 0) write(Target(own.id, -1), sum);
      own = next;
    }
  }

 private:
  // One row or part, of any length: every thread sums a share.
  template <typename TargetOf>
  __device__ void sum_run(A* shares, int64_t begin, int count, const TargetOf& target) {
    A sum = 0;
    add_products(begin, count, [&](int, A product) { sum += product; });
    for (int half = kWarp / 2; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, half);
    if (threadIdx.x % kWarp == 0) shares[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < kTileBlock / kWarp; ++warp) sum += shares[warp];
    write(target(), sum);
  }

  // add(entry, product) for this thread's entries of begin .. begin + count.
  template <typename Add>
  __device__ void add_products(int64_t begin, int count, const Add& add) {
    constexpr int kUnroll = 8;
    int32_t col[kUnroll];
    const auto load_cols = [&](int base) {
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int entry = base + u * kTileBlock;
        col[u] = entry < count ? a_.col[begin + entry] : -1;
      }
    };
    int base = threadIdx.x;
    load_cols(base);
    wait_for_stream(x_);
    while (base < count) {
      A product[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        product[u] = 0;
        if (col[u] < 0) continue;
        product[u] = load<T, 1>(x_ + col[u] * args_.ldx)[0];
        if constexpr (kWeighted) {
          if (args_.value) product[u] *= widen(static_cast<const T*>(args_.value)[begin + base + u * kTileBlock]);
          if (args_.col_scale) product[u] *= static_cast<const A*>(args_.col_scale)[col[u]];
        }
      }
      const int done = base;
      base += kTileBlock * kUnroll;
      load_cols(base);  // while the products are on their way
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (done + u * kTileBlock < count) add(done + u * kTileBlock, product[u]);
      }
    }
  }

  __device__ void write(Target target, A sum) const {
    A total[1] = {sum};
    write_sums<T, 1, true>(args_, target, 0, 0, total);
  }

  const Csr& a_;
  const SpmmArgs& args_;
  const T* x_;
};

template <typename T, bool kWeighted>
__global__ __launch_bounds__(kTileBlock, kBudgeted ? (sizeof(T) < 8 ? 10 : 8) : 1) void spmv_kernel(Csr a,
                                                                                                    SpmmArgs args) {
  __shared__ Accumulate<T> staged[staged_at(kTileEntries)];
  TileSum<T, kWeighted>(a, args).run(staged);
}

template <typename T>
int launch_spmv(const Csr& a, const SpmmArgs& args, void* stream) {
  const int64_t blocks = a.tile_parts + a.tiles;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  const auto kernel = args.value || args.col_scale ? spmv_kernel<T, true> : spmv_kernel<T, false>;
  return launch_overlapped(kernel, static_cast<unsigned>(blocks), kTileBlock, stream, a, args);
}

}  // namespace pyg_sparse::cuda
