// The product with a single feature: a block takes the entries of a tile of rows, one a thread and several at a time,
// keeps the products in shared memory, and then sums those of each row (CSR-Stream, Greathouse and Daga 2014,
// doi:10.1109/SC.2014.68). Work is balanced by entries, and there are no parts of rows to add up.
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
    const int64_t first = a_.tile_ptr[blockIdx.x];
    const int rows = static_cast<int>(a_.tile_ptr[blockIdx.x + 1] - first);
    const int64_t begin = a_.rowptr[first];
    const int count = static_cast<int>(a_.rowptr[first + rows] - begin);
    if (rows == 1) return sum_one(staged, first, begin, count);
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
      if (lane == 0) write(own.id, sum);
      own = next;
    }
  }

 private:
  // One row, of any length: every thread sums a share.
  __device__ void sum_one(A* shares, int64_t row, int64_t begin, int count) {
    A sum = 0;
    add_products(begin, count, [&](int, A product) { sum += product; });
    for (int half = kWarp / 2; half > 0; half /= 2) sum += __shfl_down_sync(~0u, sum, half);
    if (threadIdx.x % kWarp == 0) shares[threadIdx.x / kWarp] = sum;
    __syncthreads();
    if (threadIdx.x > 0) return;
    for (int warp = 1; warp < kTileBlock / kWarp; ++warp) sum += shares[warp];
    write(a_.row[row], sum);
  }

  // add(entry, product) for this thread's entries of begin .. begin + count.
  template <typename Add>
  __device__ void add_products(int64_t begin, int count, const Add& add) {
    constexpr int kUnroll = 8;
    bool waited = false;
    for (int base = threadIdx.x; base < count || !waited; base += kTileBlock * kUnroll) {
      int32_t col[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        const int entry = base + u * kTileBlock;
        col[u] = entry < count ? a_.col[begin + entry] : -1;
      }
      if (!waited) wait_for_stream(x_);
      waited = true;
      A product[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (col[u] < 0) continue;
        product[u] = load<T, 1>(x_ + col[u] * args_.ldx)[0];
        if constexpr (kWeighted) {
          if (args_.value) product[u] *= widen(static_cast<const T*>(args_.value)[begin + base + u * kTileBlock]);
          if (args_.col_scale) product[u] *= static_cast<const A*>(args_.col_scale)[col[u]];
        }
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        if (col[u] >= 0) add(base + u * kTileBlock, product[u]);
      }
    }
  }

  __device__ void write(int32_t row, A sum) const {
    A total[1] = {sum};
    write_sums<T, 1, true>(args_, Target(row, -1), 0, 0, total);
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
  if (a.tiles > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  const auto kernel = args.value || args.col_scale ? spmv_kernel<T, true> : spmv_kernel<T, false>;
  return launch_overlapped(kernel, static_cast<unsigned>(a.tiles), kTileBlock, stream, a, args);
}

}  // namespace pyg_sparse::cuda
