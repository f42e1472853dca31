// The sum over a run of entries, and where it goes. Shared by every format.
#pragma once

#include "epilogue.cuh"
#include "frame.cuh"
#include "overlap.cuh"
#include "place.cuh"
#include "pyg_sparse/operands.h"

namespace pyg_sparse::cuda {

__device__ inline int64_t edge_of(const SlotMap& slot, int64_t position) {
  if (!slot.edge) return position;
  return slot.wide ? static_cast<const int64_t*>(slot.edge)[position]
                   : static_cast<const int32_t*>(slot.edge)[position];
}

// One entry in each lane's registers. col is -1 past the end and in padding.
template <typename T>
struct Entry {
  int32_t col;
  Accumulate<T> weight;
};

// A group's running sums over one work item.
template <bool kWeighted, typename S>
class RowSum {
 public:
  using T = typename S::T;
  using A = Accumulate<T>;

  __device__ RowSum(const SpmmArgs& args, const Place<S>& place)
      : args_(args),
        place_(place),
        x_(static_cast<const char*>(args.x) + place.loaded_k() * sizeof(T)),
        row_bytes_(static_cast<uint32_t>(args.ldx * sizeof(T))) {
    // Hides how x_ came about: the compiler would add its parts again for every entry, three instructions in place of
    // one.
    asm("" : "+l"(x_));
  }

  __device__ Entry<T> load_entry(const int32_t* col, int64_t position, int64_t end) const {
    const bool there = position < end;
    const T value = load_value(position, there);
    return entry_of(there ? load_once(col + position) : -1, value);
  }

  // Adds the entries held by lanes first .. last - 1 of the group, none of which is padding if all_there.
  __device__ void add(const Entry<T>& entry, int first, int last, bool all_there = false) {
    const int pass = S::kUnroll * place_.neighbours;
    for (; all_there && first + pass <= last; first += pass) add_pass<true>(entry, first, last);
    for (; first < last; first += pass) add_pass<false>(entry, first, last);
  }

  // Adds the entries begin .. end, fewer than 2^31.
  __device__ void add_run(const int32_t* col, int64_t begin, int64_t end) {
    int64_t at = begin + place_.lane;
    int left = static_cast<int>(end - begin);
    int32_t next = place_.lane < left ? load_once(col + at) : -1;
    wait();
    T next_value = load_value(at, place_.lane < left);
    for (; left > 0; left -= place_.batch) {
      const Entry<T> entry = entry_of(next, next_value);
      at += place_.batch;
      const bool there = place_.lane + place_.batch < left;
      next = there ? load_once(col + at) : -1;  // while these entries are summed
      next_value = load_value(at, there);
      const int count = min(left, place_.batch);
      const bool all_there = __all_sync(place_.mask, place_.lane >= count || entry.col >= 0);
      if constexpr (kStaged) {
        add_staged(entry, count, all_there);
      } else {
        add(entry, 0, count, all_there);
      }
    }
  }

  // Writes the sums: to a partial, or to out with the epilogue. Then starts anew.
  __device__ void finish(Target target) {
    if constexpr (S::kFrame) {
      shift_frame(place_, -phase_, sum_);
      phase_ = 0;
    }
    sum_neighbours();
    if (place_.neighbour == 0 && place_.has_features()) {
      // A frame's last lane may have fewer features than the others.
      write_sums<T, S::kVec, !S::kFrame>(args_, target, place_.k, place_.end, sum_);
    }
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) sum_[v] = 0;
  }

 private:
  // Loaded for padding, too: to know better, the lane would have to wait for the column.
  __device__ T load_value(int64_t position, bool there) const {
    if constexpr (kWeighted) {
      if (there && args_.value)
        return load_once(static_cast<const T*>(args_.value) + place_.head * args_.positions + position);
    }
    return T{};
  }

  __device__ Entry<T> entry_of(int32_t col, T value) const {
    Entry<T> entry{col, A(0)};
    if constexpr (kWeighted) {
      if (col >= 0) {
        entry.weight = args_.value ? widen(value) : A(1);
        if (args_.col_scale) entry.weight *= static_cast<const A*>(args_.col_scale)[col];
      }
    }
    return entry;
  }

  __device__ void wait() {
    if constexpr (S::kFrame) {
      wait_for_stream(frame_.base);
    } else {
      wait_for_stream(x_);
    }
  }

  // Entries come through shared memory where there are two words of each: a lane reads those of several loads at once,
  // while each word by shuffle would take a turn in L1's pipe, as a load does. Columns alone are no faster this way.
  static constexpr bool kStaged = kWeighted && !S::kFrame;

  template <typename V, int kCount>
  struct alignas(sizeof(V) * kCount < 16 ? sizeof(V) * kCount : 16) Some {
    V of[kCount];
  };

  // What add does with a batch from its start, but a neighbour takes kUnroll entries that follow each other.
  __device__ void add_staged(const Entry<T>& entry, int count, bool all_there) {
    __shared__ alignas(16) int32_t col[kBlock];
    __shared__ alignas(16) A weight[kBlock];
    __syncwarp(place_.mask);  // the batch before has been read
    col[threadIdx.x] = entry.col;
    weight[threadIdx.x] = entry.weight;
    __syncwarp(place_.mask);
    int at = static_cast<int>(threadIdx.x) - place_.lane + place_.loaded_neighbour() * S::kUnroll;
    const int pass = S::kUnroll * place_.neighbours;
    for (; all_there && pass <= count; at += pass, count -= pass) add_staged_pass<true>(col + at, weight + at);
    for (; count > 0; at += pass, count -= pass) add_staged_pass<false>(col + at, weight + at);
  }

  template <bool kFull>
  __device__ void add_staged_pass(const int32_t* col, const A* weight) {
    constexpr int kSome = S::kUnroll < 4 ? S::kUnroll : 4;
    Vec<T, S::kVec> value[S::kUnroll];
#pragma unroll
    for (int u = 0; u < S::kUnroll; u += kSome) {
      const auto c = *reinterpret_cast<const Some<int32_t, kSome>*>(col + u);
#pragma unroll
      for (int i = 0; i < kSome; ++i) value[u + i] = load_row<kFull>(c.of[i]);
    }
    asm volatile("" ::: "memory");  // weights would hold registers while the loads are on their way
#pragma unroll
    for (int u = 0; u < S::kUnroll; u += kSome) {
      const auto w = *reinterpret_cast<const Some<A, kSome>*>(weight + u);
#pragma unroll
      for (int i = 0; i < kSome; ++i) add_row(value[u + i], w.of[i]);
    }
  }

  // Nothing if the entry is not there: padding, or past the end.
  template <bool kFull>
  __device__ Vec<T, S::kVec> load_row(int32_t col) const {
    const char* source = x_ + static_cast<uint64_t>(static_cast<uint32_t>(col)) * row_bytes_;
    return kFull || col >= 0 ? load<T, S::kVec>(reinterpret_cast<const T*>(source)) : Vec<T, S::kVec>{};
  }

  // kUnroll entries of every neighbour, from the lane first on. With kFull all of them are there.
  template <bool kFull>
  __device__ void add_pass(const Entry<T>& entry, int first, int last) {
    Vec<T, S::kVec> value[S::kUnroll];
    int phase[S::kUnroll];
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) {
      const int from = first + u * place_.neighbours + place_.loaded_neighbour();
      const int32_t col = __shfl_sync(place_.mask, entry.col, from, S::kRow);
      const bool valid = kFull || (from < last && col >= 0);
      if constexpr (S::kFrame) {
        const uint32_t element = frame_.element(static_cast<uint32_t>(col), static_cast<uint32_t>(args_.ldx));
        phase[u] = valid ? Frame<S>::phase(element) : phase_;
        value[u] = valid ? frame_.load_word(place_, element) : Vec<T, S::kVec>{};
      } else {
        value[u] = load_row<kFull>(valid ? col : -1);
      }
    }
    // Weights come by shuffle only now: they would hold registers while the loads are on their way.
    const auto weight_of = [&](int u) {
      if constexpr (!kWeighted) return A(1);
      const int from = first + u * place_.neighbours + place_.loaded_neighbour();
      const A weight = __shfl_sync(place_.mask, entry.weight, from, S::kRow);
      return kFull || from < last ? weight : A(0);  // what is not there adds 0 * 0, not 0 times another's NaN
    };
    if constexpr (S::kFrame) {
      A weight[S::kUnroll];
#pragma unroll
      for (int u = 0; u < S::kUnroll; ++u) weight[u] = weight_of(u);
      add_by_phase(value, weight, phase);
    } else {
#pragma unroll
      for (int u = 0; u < S::kUnroll; ++u) add_row(value[u], weight_of(u));
    }
  }

  __device__ void add_row(const Vec<T, S::kVec>& value, A weight) {
#pragma unroll
    for (int v = 0; v < S::kVec; ++v) sum_[v] += kWeighted ? weight * value[v] : value[v];
  }

  // Adds the rows of the phase at hand, then moves on to a phase that is left, until none is.
  __device__ void add_by_phase(const Vec<T, S::kVec> (&value)[S::kUnroll], const A (&weight)[S::kUnroll],
                               int (&phase)[S::kUnroll]) {
    constexpr int kDone = -1;
    bool others = false;
#pragma unroll
    for (int u = 0; u < S::kUnroll; ++u) others |= phase[u] != phase_;
    if (!__any_sync(place_.mask, others)) {
#pragma unroll
      for (int u = 0; u < S::kUnroll; ++u) add_row(value[u], weight[u]);
      return;
    }
    while (true) {
      int left = kDone;
#pragma unroll
      for (int u = 0; u < S::kUnroll; ++u) {
        if (phase[u] == phase_) {
          add_row(value[u], weight[u]);
          phase[u] = kDone;
        } else if (phase[u] != kDone) {
          left = phase[u];
        }
      }
      const unsigned lanes_left = __ballot_sync(place_.mask, left != kDone);
      if (!lanes_left) return;
      const int next = __shfl_sync(place_.mask, left, __ffs(lanes_left) - 1);
      shift_frame(place_, next - phase_, sum_);
      phase_ = next;
    }
  }

  // Adds up the neighbours of a group, into the lanes of the first.
  __device__ void sum_neighbours() {
    for (int count = place_.neighbours; count > 1;) {
      const int half = (count + 1) / 2;
#pragma unroll
      for (int v = 0; v < S::kVec; ++v) {
        const A other = __shfl_down_sync(place_.mask, sum_[v], half * place_.lanes, S::kRow);
        if (place_.neighbour + half < count) sum_[v] += other;
      }
      count = half;
    }
  }

  const SpmmArgs& args_;
  const Place<S>& place_;
  const char* x_;  // this lane's first feature in row 0
  uint32_t row_bytes_;
  struct NoFrame {
    __device__ NoFrame(const SpmmArgs&, const Place<S>&) {}
  };
  std::conditional_t<S::kFrame, Frame<S>, NoFrame> frame_{args_, place_};
  int phase_ = 0;
  A sum_[S::kVec] = {};
};

}  // namespace pyg_sparse::cuda
