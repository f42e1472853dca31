#include <limits>

#include "division.cuh"
#include "overlap.cuh"
#include "place.cuh"
#include "pyg_sparse/order.h"

namespace pyg_sparse::cuda {
namespace {

// Each thread has several values on their way: it waits for a slot, then for what lies there.
constexpr int kInFlight = 8;

template <typename T, typename Edge>
__global__ __launch_bounds__(kBlock, 1) void gather_kernel(GatherArgs args) {
  const auto* slot = static_cast<const Edge*>(args.slot.edge);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kBlock * kInFlight) + threadIdx.x;
  Edge edge[kInFlight];
#pragma unroll
  for (int u = 0; u < kInFlight; ++u) edge[u] = first + u * kBlock < args.positions ? slot[first + u * kBlock] : 0;
  wait_for_stream();
  for (int64_t h = 0; h < args.heads; ++h) {
    const T* from = static_cast<const T*>(args.from) + h;
    T* to = static_cast<T*>(args.to) + h * args.positions + first;
    T value[kInFlight];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) value[u] = from[edge[u] * args.heads];
#pragma unroll
    for (int u = 0; u < kInFlight; ++u) {
      if (first + u * kBlock < args.positions) to[u * kBlock] = value[u];
    }
  }
}

constexpr int kRowBlock = 128, kScattered = 4, kRowsOfBlock = 8;
constexpr int kStagedBytes = 1 << 14;

// A block takes several rows, each while the first entries of the next are on their way. A row's values, whose edges
// lie side by side, pass through shared memory, so that they are written in sequence: there a value lies at its edge
// modulo kStaged. Rows of more values are written as they come.
template <typename T, typename Edge>
__global__ __launch_bounds__(kRowBlock, kBudgeted ? 10 : 1) void scatter_kernel(ScatterArgs args) {
  constexpr int kStaged = kStagedBytes / sizeof(T), kWarps = kRowBlock / kWarp;
  __shared__ T staged[kStaged];
  __shared__ int least[kWarps];
  const auto* slot = static_cast<const Edge*>(args.slot.edge);
  const T* from = static_cast<const T*>(args.from);
  T* to = static_cast<T*>(args.to);
  struct Row {
    int64_t begin, length;
  };
  const auto row_at = [&](int64_t row) {
    if (row >= args.runs.rows) return Row{0, 0};
    return Row{args.runs.rowptr[row], args.runs.rowptr[row + 1] - args.runs.rowptr[row]};
  };
  Row now = row_at(blockIdx.x), next = row_at(blockIdx.x + int64_t{gridDim.x});
  Edge edge[kScattered], origin;
  T value[kScattered];
  const auto load = [&](const Row& row, int64_t base) {
#pragma unroll
    for (int u = 0; u < kScattered; ++u) {
      const int64_t i = base + u * kRowBlock;
      if (i >= row.length) continue;
      edge[u] = slot[row.begin + i];
      value[u] = from[row.begin + i];
    }
  };
  const auto load_first = [&](const Row& row) {
    if (row.length > 0) origin = slot[row.begin];
    load(row, threadIdx.x);
  };
  wait_for_stream();
  load_first(now);
  for (int64_t row = blockIdx.x; row < args.runs.rows; row += gridDim.x) {
    const Row after = row_at(row + 2 * int64_t{gridDim.x});
    if (now.length > kStaged) {
#pragma unroll 4
      for (int64_t i = threadIdx.x; i < now.length; i += kRowBlock) to[slot[now.begin + i]] = from[now.begin + i];
      load_first(next);
    } else {
      const int count = static_cast<int>(now.length);
      const Edge origin_now = origin;
      int own_least = 0;  // edge, from that one on
      for (int base = threadIdx.x;;) {
#pragma unroll
        for (int u = 0; u < kScattered; ++u) {
          if (base + u * kRowBlock >= count) continue;
          staged[edge[u] % kStaged] = value[u];
          own_least = min(own_least, static_cast<int>(edge[u] - origin_now));
        }
        base += kRowBlock * kScattered;
        if (base >= count) break;
        load(now, base);
      }
      load_first(next);
      for (int half = kWarp / 2; half > 0; half /= 2) own_least = min(own_least, __shfl_xor_sync(~0u, own_least, half));
      if (threadIdx.x % kWarp == 0) least[threadIdx.x / kWarp] = own_least;
      __syncthreads();
#pragma unroll
      for (int w = 0; w < kWarps; ++w) own_least = min(own_least, least[w]);
      const int64_t first = origin_now + static_cast<int64_t>(own_least);
      for (int i = threadIdx.x; i < count; i += kRowBlock) to[first + i] = staged[(first + i) % kStaged];
      __syncthreads();
    }
    now = next;
    next = after;
  }
}

// visit(type of the slots)
template <typename Visitor>
int visit_slots(const SlotMap& slot, const Visitor& visit) {
  return slot.wide ? visit(Type<int64_t>{}) : visit(Type<int32_t>{});
}

}  // namespace

int gather_values(const GatherArgs& args, void* stream) {
  constexpr int64_t kElements = kBlock * kInFlight;
  const int64_t blocks = (args.positions + kElements - 1) / kElements;
  if (blocks == 0) return cudaSuccess;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return visit_dtype(args.dtype, [&](auto tag) {
    return visit_slots(args.slot, [&](auto edge) {
      const auto kernel = gather_kernel<typename decltype(tag)::type, typename decltype(edge)::type>;
      return launch_overlapped(kernel, static_cast<unsigned>(blocks), kBlock, stream, args);
    });
  });
}

int scatter_values(const ScatterArgs& args, void* stream) {
  const int64_t blocks = ceil_div(args.runs.rows, kRowsOfBlock);
  if (blocks == 0) return cudaSuccess;
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return visit_dtype(args.dtype, [&](auto tag) {
    return visit_slots(args.slot, [&](auto edge) {
      const auto kernel = scatter_kernel<typename decltype(tag)::type, typename decltype(edge)::type>;
      return launch_overlapped(kernel, static_cast<unsigned>(blocks), kRowBlock, stream, args);
    });
  });
}

}  // namespace pyg_sparse::cuda
