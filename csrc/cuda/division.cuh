// How the work of a launch is divided: lanes across features, slices of features, threads in a block.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "place.cuh"
#include "pyg_sparse/operands.h"

namespace pyg_sparse::cuda {

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline bool aligned(const void* pointer, int64_t stride_bytes, int64_t bytes) {
  return reinterpret_cast<uintptr_t>(pointer) % bytes == 0 && stride_bytes % bytes == 0;
}

// Whether a head's rows are made of whole vectors of that many elements, in x, out and self.
template <typename T>
bool in_vectors(const SpmmArgs& args, int64_t width, int64_t elements) {
  constexpr int64_t kSize = sizeof(T);
  const int64_t bytes = elements * kSize;
  return width % elements == 0 && aligned(args.x, args.ldx * kSize, bytes) &&
         aligned(args.out, args.k * kSize, bytes) &&
         (!args.self_scale || aligned(args.self, args.ldself * kSize, bytes));
}

// The budgets of registers were found and measured on 9.0. Elsewhere one block is all that is asked of the compiler, so
// that it never spills to raise occupancy by itself.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 900
constexpr bool kBudgeted = true;
#else
constexpr bool kBudgeted = false;
#endif

// What the choice of a shape depends on.
struct Work {
  int64_t items;
  int64_t nnz;
  int64_t width;  // features of a head
  int64_t heads;
};

// A head in equal slices, and the lanes that load a slice of a row.
struct Division {
  int lanes;
  int64_t slices;
  int64_t slice;
};

// A slice costs the sectors of 32 bytes that it touches, and an instruction for as many entries as lie side by side in
// a group. A frame has room for the elements before and after a row's.
template <typename S>
Division divide(int64_t width, int max_lanes) {
  constexpr int64_t kVec = S::kVec, kAround = S::kFrame ? kVec - 1 : 0;
  const int64_t most = max_lanes * kVec - kAround, fewest = ceil_div(width, most);
  Division best{};
  int64_t least = std::numeric_limits<int64_t>::max();
  // Frames touch more than a row at either end, so the fewest slices are best.
  const int64_t last = S::kFrame ? fewest : std::min(width, fewest + 3);
  for (int64_t slices = fewest; slices <= last; ++slices) {
    const int64_t slice = ceil_div(ceil_div(width, slices), S::kFrame ? 1 : kVec) * (S::kFrame ? 1 : kVec);
    const int64_t lanes = ceil_div(slice + kAround, kVec), neighbours = S::kRow / lanes;
    const int64_t sectors = ceil_div(lanes * kVec * static_cast<int64_t>(sizeof(typename S::T)), 32);
    const int64_t cost = slices * (sectors * neighbours + 4) * 256 / neighbours;
    if (cost < least) {
      least = cost;
      best = {static_cast<int>(lanes), slices, slice};
    }
  }
  return best;
}

inline int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 1;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) return 1;
  return std::max(value, 1);
}

// Threads in a block: fewer where whole blocks would leave multiprocessors idle.
inline int block_threads(int64_t threads) {
  const int64_t processors = attribute(cudaDevAttrMultiProcessorCount);
  int block = kBlock;
  while (block > 2 * kWarp && threads < 2 * block * processors) block /= 2;
  return block;
}

constexpr int64_t kWarpsToFill = 32;  // per multiprocessor

}  // namespace pyg_sparse::cuda
