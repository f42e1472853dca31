#include "pyg_sparse/extremum.h"

#include <limits>

#include "row_sum.h"

namespace pyg_sparse::cpu {
namespace {

// Entries of one row, without padding, and where their extremum goes: a row of out, or of partial if that is not -1.
struct Run {
  int64_t begin, end, row, partial;
};

template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Csr& a, int64_t item, const Visitor& visit) {
  if (item < a.parts) return visit(Run{a.part_ptr[item], a.part_ptr[item + 1], -1, item});
  const int64_t r = a.long_rows + item - a.parts;
  visit(Run{a.rowptr[r], a.rowptr[r + 1], a.row[r], -1});
}

template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Coo& a, int64_t chunk, const Visitor& visit) {
  const int64_t first = a.chunk_ptr[chunk], last = a.chunk_ptr[chunk + 1];
  for (int64_t begin = first, end; begin < last; begin = end) {
    for (end = begin + 1; end < last && a.row[end] == a.row[begin];) ++end;
    visit(Run{begin, end, a.row[begin], begin == first ? a.head[chunk] : end == last ? a.tail[chunk] : -1});
  }
}

template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Hyb& a, int64_t ell_row, const Visitor& visit) {
  const HybBucket bucket = bucket_of(a, ell_row);
  const int64_t begin = bucket.first_entry + (ell_row - bucket.first_row) * bucket.width;
  int64_t end = begin + bucket.width;
  while (end > begin && a.col[end - 1] < 0) --end;
  visit(Run{begin, end, a.row[ell_row], a.partial[ell_row]});
}

template <typename T>
PYG_SPARSE_INLINE void write(const ExtremumArgs& args, int64_t row, int64_t k, int width, const Accumulate<T>* best,
                             const int64_t* at) {
  T* out = static_cast<T*>(args.out) + row * args.k + k;
  for (int j = 0; j < width; ++j) out[j] = narrow<T>(at[j] < 0 ? 0 : args.largest ? best[j] : -best[j]);
  std::copy(at, at + width, args.arg + row * args.k + k);
}

template <typename T, int kWidth>
PYG_SPARSE_INLINE void extremum_block(const ExtremumArgs& args, const int32_t* col, const SlotMap& slot, const Run& run,
                                      int64_t k) {
  using A = Accumulate<T>;
  constexpr int kPerLine = 64 / sizeof(T);
  const T* x = static_cast<const T*>(args.x) + k;
  const A sign = args.largest ? A(1) : A(-1);
  A best[kWidth];
  int64_t at[kWidth];
  std::fill(best, best + kWidth, -std::numeric_limits<A>::infinity());
  std::fill(at, at + kWidth, -1);
  for (int64_t p = run.begin; p < run.end; ++p) {
    const T* ahead = x + col[std::min(p + kPrefetchDistance, run.end - 1)] * args.ldx;
    for (int j = 0; j < kWidth; j += kPerLine) __builtin_prefetch(ahead + j);
    const T* source = x + col[p] * args.ldx;
    const A weight = args.value ? sign * widen(static_cast<const T*>(args.value)[edge_of(slot, p)]) : sign;
    for (int j = 0; j < kWidth; ++j) {
      const A message = weight * widen(source[j]);
      const bool wins = beats(message, best[j]);
      best[j] = wins ? message : best[j];
      at[j] = wins ? p : at[j];
    }
  }
  // Where nothing beat -inf, every message is -inf, and the first of them wins.
  if (run.begin < run.end) {
    for (int j = 0; j < kWidth; ++j) at[j] = at[j] < 0 ? run.begin : at[j];
  }
  if (run.partial < 0) return write<T>(args, run.row, k, kWidth, best, at);
  std::copy(best, best + kWidth, static_cast<A*>(args.partial) + run.partial * args.k + k);
  std::copy(at, at + kWidth, args.partial_arg + run.partial * args.k + k);
}

template <typename T, typename Format>
PYG_SPARSE_CLONES void extremum_range(const Format& a, const ExtremumArgs& args, int64_t first, int64_t last) {
  for (int64_t item = first; item < last; ++item) {
    for_each_run(a, item, [&](const Run& run) __attribute__((always_inline)) {
      int64_t k = 0;
      for (; args.k - k >= 32; k += 32) extremum_block<T, 32>(args, a.col, a.slot, run, k);
      for (; args.k - k >= 8; k += 8) extremum_block<T, 8>(args, a.col, a.slot, run, k);
      for (; k < args.k; ++k) extremum_block<T, 1>(args, a.col, a.slot, run, k);
    });
  }
}

template <typename Format>
void extremum_of(const Format& a, const ExtremumArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { extremum_range<typename decltype(tag)::type>(a, args, first, last); });
}

// The partials of a row are in stored order, so that among equal ones the first has the lowest position.
template <typename T>
PYG_SPARSE_CLONES void combine_range(const SharedRows& shared, const ExtremumArgs& args, int64_t first, int64_t last) {
  using A = Accumulate<T>;
  constexpr int kWidth = 64;
  for (int64_t i = first; i < last; ++i) {
    for (int64_t k = 0; k < args.k; k += kWidth) {
      const int width = static_cast<int>(std::min<int64_t>(kWidth, args.k - k));
      A best[kWidth] = {};
      int64_t at[kWidth];
      std::fill(at, at + width, -1);
      for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) {
        const A* message = static_cast<const A*>(args.partial) + p * args.k + k;
        const int64_t* position = args.partial_arg + p * args.k + k;
        for (int j = 0; j < width; ++j) {
          if (at[j] >= 0 && !beats(message[j], best[j])) continue;
          best[j] = message[j];
          at[j] = position[j];
        }
      }
      write<T>(args, shared.row[i], k, width, best, at);
    }
  }
}

}  // namespace

void extremum(const Csr& a, const ExtremumArgs& args, int64_t first_item, int64_t last_item) {
  extremum_of(a, args, first_item, last_item);
}
void extremum(const Coo& a, const ExtremumArgs& args, int64_t first_item, int64_t last_item) {
  extremum_of(a, args, first_item, last_item);
}
void extremum(const Hyb& a, const ExtremumArgs& args, int64_t first_item, int64_t last_item) {
  extremum_of(a, args, first_item, last_item);
}

void combine_extremum(const SharedRows& shared, const ExtremumArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { combine_range<typename decltype(tag)::type>(shared, args, first, last); });
}

}  // namespace pyg_sparse::cpu
