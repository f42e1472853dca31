// The extremum over a run of entries, and where it goes. One kernel serves every format: for_each_run(a, place, visit)
// yields the runs of a work item, the same in all lanes of its group.
#pragma once

#include "launch.cuh"
#include "pyg_sparse/extremum.h"
#include "run.cuh"

namespace pyg_sparse::cuda {

// Entries of one row, and where their extremum goes: a row of out, or of partial if that is not -1.
struct Run {
  int64_t begin, end, row, partial;
};

// Of the formats whose item is one run.
template <typename Format, typename S, typename Visitor>
__device__ void for_each_run(const Format& a, const Place<S>& place, const Visitor& visit) {
  const Bounds bounds = bounds_of(a, place.item);
  const Target target = target_of(a, place.item);
  visit(target.is_partial() ? Run{bounds.begin, bounds.end, -1, target.partial()}
                            : Run{bounds.begin, bounds.end, target.row(), -1});
}

template <typename S, typename Visitor>
__device__ void for_each_run(const Coo& a, const Place<S>& place, const Visitor& visit) {
  const int64_t first = a.chunk_ptr[place.item], last = a.chunk_ptr[place.item + 1];
  const int shift = threadIdx.x % kWarp - place.lane;
  for (int64_t begin = first, end; begin < last; begin = end) {
    const int32_t row = a.row[begin];
    // Bit j of differs: lane j is past the run.
    unsigned differs = 0;
    for (end = begin; differs == 0; end += differs == 0 ? S::kRow : __ffs(differs) - 1) {
      const int64_t p = end + place.lane;
      differs = __ballot_sync(place.mask, p >= last || a.row[p] != row) >> shift;
      if constexpr (S::kRow < kWarp) differs &= (1u << S::kRow) - 1u;
    }
    visit(Run{begin, end, row, begin == first ? a.head[place.item] : end == last ? a.tail[place.item] : -1});
  }
}

// The best message of each of a lane's features so far, and its position.
template <typename S>
class Best {
 public:
  using T = typename S::T;
  using A = Accumulate<T>;

  __device__ Best(const ExtremumArgs& args, const Place<S>& place) : args_(args), place_(place) {
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) {
      best_[v] = -__builtin_huge_val();
      at_[v] = -1;
    }
  }

  __device__ void take_run(const int32_t* col, const SlotMap& slot, const Run& run) {
    for (int64_t base = run.begin; base < run.end; base += place_.batch) {
      const int64_t left = run.end - base;
      const int count = left < place_.batch ? static_cast<int>(left) : place_.batch;
      const Entry<T> entry = load_entry(col, slot, base + place_.lane, run.end);
      int first = 0;
      for (; first + place_.neighbours < count; first += kLoads * place_.neighbours) {
        take_pass<kLoads>(entry, base, first, count);
      }
      if (first < count) take_pass<1>(entry, base, first, count);
    }
    take_neighbours();
    // Where nothing beat -inf, every message is -inf, and the first of them wins.
    const bool empty = run.begin == run.end || col[run.begin] < 0;
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) at_[v] = at_[v] < 0 && !empty ? run.begin : at_[v];
  }

  __device__ void write(const Run& run) {
    if (place_.neighbour != 0 || !place_.has_features()) return;
    if (run.partial >= 0) {
      const int64_t to = run.partial * args_.k + place_.k;
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) static_cast<A*>(args_.partial)[to + v] = best_[v];
      write_positions(args_.partial_arg + to);
      return;
    }
    const int64_t to = run.row * args_.k + place_.k;
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) best_[v] = at_[v] < 0 ? A(0) : args_.largest ? best_[v] : -best_[v];
    store<T, S::kVec>(static_cast<T*>(args_.out) + to, best_);
    write_positions(args_.arg + to);
  }

 private:
  static constexpr int kLoads = 4;  // in flight

  // Without its weight, a message has that of its sign.
  __device__ Entry<T> load_entry(const int32_t* col, const SlotMap& slot, int64_t position, int64_t end) const {
    Entry<T> entry{-1, args_.largest ? A(1) : A(-1)};
    if (position < end) entry.col = col[position];
    if (args_.value && entry.col >= 0) {
      entry.weight *= widen(static_cast<const T*>(args_.value)[edge_of(slot, position)]);
    }
    return entry;
  }

  // kCount entries of every neighbour, from the lane first on; entries begin at position base.
  template <int kCount>
  __device__ void take_pass(const Entry<T>& entry, int64_t base, int first, int count) {
    const T* x = static_cast<const T*>(args_.x) + place_.loaded_k();
    const int own = first + place_.loaded_neighbour();
    Vec<T, S::kVec> value[kCount];
    A weight[kCount];
    bool valid[kCount];
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
      const int from = own + u * place_.neighbours;
      const int32_t col = __shfl_sync(place_.mask, entry.col, from, S::kRow);
      weight[u] = __shfl_sync(place_.mask, entry.weight, from, S::kRow);
      valid[u] = from < count && col >= 0;
      value[u] = valid[u] ? load<T, S::kVec>(x + col * args_.ldx) : Vec<T, S::kVec>{};
    }
#pragma unroll
    for (int u = 0; u < kCount; ++u) {
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) {
        const A message = weight[u] * value[u][v];
        if (valid[u] && beats(message, best_[v])) {
          best_[v] = message;
          at_[v] = base + own + u * place_.neighbours;
        }
      }
    }
  }

  // The best of a group's neighbours, into the lanes of the first. Of equal ones the lower position wins.
  __device__ void take_neighbours() {
    for (int count = place_.neighbours; count > 1;) {
      const int half = (count + 1) / 2;
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) {
        const A other = __shfl_down_sync(place_.mask, best_[v], half * place_.lanes, S::kRow);
        const long long at = __shfl_down_sync(place_.mask, at_[v], half * place_.lanes, S::kRow);
        const bool equal = other == best_[v] || (other != other && best_[v] != best_[v]);
        if (place_.neighbour + half < count && (beats(other, best_[v]) || (equal && at < at_[v]))) {
          best_[v] = other;
          at_[v] = at;
        }
      }
      count = half;
    }
  }

  __device__ void write_positions(int64_t* to) const {
    if constexpr (S::kVec == 1) {
      *to = at_[0];
    } else {
#pragma unroll
      for (int v = 0; v < S::kVec; v += 2) *reinterpret_cast<longlong2*>(to + v) = {at_[v], at_[v + 1]};
    }
  }

  const ExtremumArgs& args_;
  const Place<S>& place_;
  A best_[S::kVec];
  long long at_[S::kVec];  // as shuffles take them
};

template <typename Format, typename S>
__global__ __launch_bounds__(kBlock, 1) void extremum_kernel(Format a, ExtremumArgs args, Grid grid) {
  const Place<S> place(grid);
  if (place.item >= grid.items) return;
  for_each_run(a, place, [&](const Run& run) {
    Best<S> best(args, place);
    best.take_run(a.col, a.slot, run);
    best.write(run);
  });
}

template <typename Format>
int launch_extremum(const Format& a, int64_t nnz, const ExtremumArgs& args, void* stream) {
  const Work work{items(a), nnz, args.k, 1};
  if (work.items == 0 || args.k == 0) return cudaSuccess;
  const auto launch = [&]<typename S>(S shape, int max_lanes) {
    const auto run = [&](auto, const Grid& grid, unsigned blocks, int threads) {
      extremum_kernel<Format, S><<<blocks, threads, 0, static_cast<cudaStream_t>(stream)>>>(a, args, grid);
      return cudaGetLastError();
    };
    static_cast<void>(shape);
    return launch_shape<S>(work, divide<S>(work.width, max_lanes), run);
  };
  return visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) < 8) {
      constexpr int64_t kVec = kFullVec<T>, kSize = sizeof(T);
      if (work.width % kVec == 0 && aligned(args.x, args.ldx * kSize, 16) && aligned(args.out, args.k * kSize, 16)) {
        if (share_a_warp(work, work.width / kVec, 8)) return launch(Shape<T, kVec, 8, 1>{}, 8);
        return launch(Shape<T, kVec, kWarp, 1>{}, kWarp);
      }
    }
    if (share_a_warp(work, work.width, 8)) return launch(Shape<T, 1, 8, 1>{}, 8);
    return launch(Shape<T, 1, kWarp, 1>{}, kWarp);
  });
}

}  // namespace pyg_sparse::cuda
