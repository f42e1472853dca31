#include "pyg_sparse/coo.h"

#include "row_sum.h"

namespace pyg_sparse::cpu {
namespace {

// Calls visit(row, begin, end, is_first, is_last) for each run of equal rows in a chunk.
template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Coo& a, int64_t chunk, const Visitor& visit) {
  const int64_t first = a.chunk_ptr[chunk], last = a.chunk_ptr[chunk + 1];
  for (int64_t begin = first, end; begin < last; begin = end) {
    const int32_t row = a.row[begin];
    for (end = begin + 1; end < last && a.row[end] == row;) ++end;
    visit(row, begin, end, begin == first, end == last);
  }
}

template <typename T, bool kWeighted>
PYG_SPARSE_CLONES void spmm_range(const Coo& a, const SpmmArgs& args, int64_t first, int64_t last) {
  for (int64_t chunk = first; chunk < last; ++chunk) {
    for_each_run(a, chunk,
                 [&](int32_t row, int64_t begin, int64_t end, bool is_first, bool is_last)
                     __attribute__((always_inline)) {
                       const int64_t partial = is_first ? a.head[chunk] : is_last ? a.tail[chunk] : -1;
                       sum_entries<T, kWeighted>(args, a.col, a.slot, begin, end, Sink<T>{args, row, partial});
                     });
  }
}

template <typename T>
PYG_SPARSE_CLONES void sddmm_range(const Coo& a, const SddmmArgs& args, int64_t first, int64_t last) {
  for (int64_t chunk = first; chunk < last; ++chunk) {
    for_each_run(a, chunk, [&](int32_t row, int64_t begin, int64_t end, bool, bool) __attribute__((always_inline)) {
      dot_entries<T>(args, a.col, a.slot, row, begin, end);
    });
  }
}

}  // namespace

void spmm(const Coo& a, const SpmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    (weighted(args) ? spmm_range<T, true> : spmm_range<T, false>)(a, args, first_item, last_item);
  });
}

void sddmm(const Coo& a, const SddmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) { sddmm_range<typename decltype(tag)::type>(a, args, first_item, last_item); });
}

}  // namespace pyg_sparse::cpu
