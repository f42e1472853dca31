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

constexpr int kRowBlock = 128, kScattered = 4;
constexpr int kStaged = 2048;  // values of a row that are kept: a power of two

// A block a row. If the row's edges lie side by side, its values pass through shared memory, so that they are written
// in sequence: there a value lies at its edge modulo kStaged.
template <typename T, typename Edge>
__global__ __launch_bounds__(kRowBlock, kBudgeted ? 16 : 1) void scatter_kernel(ScatterArgs args) {
  constexpr int kWarps = kRowBlock / kWarp;
  __shared__ T staged[kStaged];
  __shared__ int least[kWarps], most[kWarps];
  wait_for_stream();
  const int64_t begin = args.runs.rowptr[blockIdx.x], length = args.runs.rowptr[blockIdx.x + 1] - begin;
  if (length == 0) return;
  const auto* slot = static_cast<const Edge*>(args.slot.edge) + begin;
  const T* from = static_cast<const T*>(args.from) + begin;
  T* to = static_cast<T*>(args.to);
  if (length > kStaged) {
#pragma unroll 4
    for (int64_t i = threadIdx.x; i < length; i += kRowBlock) to[slot[i]] = from[i];
    return;
  }
  const int count = static_cast<int>(length);
  const Edge origin = slot[0];
  int own_least = 0, own_most = 0;  // edges, from the origin on
  for (int i = threadIdx.x; i < count; i += kRowBlock * kScattered) {
    Edge edge[kScattered];
    T value[kScattered];
#pragma unroll
    for (int u = 0; u < kScattered; ++u) {
      const bool there = i + u * kRowBlock < count;
      edge[u] = there ? slot[i + u * kRowBlock] : origin;
      if (there) value[u] = from[i + u * kRowBlock];
    }
#pragma unroll
    for (int u = 0; u < kScattered; ++u) {
      if (i + u * kRowBlock < count) staged[edge[u] % kStaged] = value[u];
      // Two edges differ by less than 2^63, and those of a row that lie side by side by less than kStaged.
      const Edge offset = edge[u] - origin;
      own_least = offset < -kStaged ? -kStaged : min(own_least, static_cast<int>(offset));
      own_most = offset > kStaged ? kStaged : max(own_most, static_cast<int>(offset));
    }
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    own_least = min(own_least, __shfl_xor_sync(~0u, own_least, offset));
    own_most = max(own_most, __shfl_xor_sync(~0u, own_most, offset));
  }
  if (threadIdx.x % kWarp == 0) {
    least[threadIdx.x / kWarp] = own_least;
    most[threadIdx.x / kWarp] = own_most;
  }
  __syncthreads();
#pragma unroll
  for (int w = 0; w < kWarps; ++w) {
    own_least = min(own_least, least[w]);
    own_most = max(own_most, most[w]);
  }
  const int64_t first = origin + static_cast<int64_t>(own_least);
  if (own_most - own_least == count - 1) {
    for (int i = threadIdx.x; i < count; i += kRowBlock) to[first + i] = staged[(first + i) % kStaged];
  } else {  // two of the values may have had one place
    for (int i = threadIdx.x; i < count; i += kRowBlock) to[slot[i]] = from[i];
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
  if (args.runs.rows == 0) return cudaSuccess;
  if (args.runs.rows > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  return visit_dtype(args.dtype, [&](auto tag) {
    return visit_slots(args.slot, [&](auto edge) {
      const auto kernel = scatter_kernel<typename decltype(tag)::type, typename decltype(edge)::type>;
      return launch_overlapped(kernel, static_cast<unsigned>(args.runs.rows), kRowBlock, stream, args);
    });
  });
}

}  // namespace pyg_sparse::cuda
