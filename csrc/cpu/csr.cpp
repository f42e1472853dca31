#include "pyg_sparse/csr.h"

#include "row_sum.h"

namespace pyg_sparse::cpu {
namespace {

template <typename T, bool kWeighted>
PYG_SPARSE_CLONES void spmm_range(const Csr& a, const SpmmArgs& args, int64_t first, int64_t last) {
  for (int64_t item = first; item < last; ++item) {
    if (item < a.parts) {
      const Sink<T> sink{args, 0, item};
      sum_entries<T, kWeighted>(args, a.col, a.slot, a.part_ptr[item], a.part_ptr[item + 1], sink);
    } else {
      const int64_t r = a.long_rows + item - a.parts;
      const Sink<T> sink{args, a.row[r], -1};
      sum_entries<T, kWeighted>(args, a.col, a.slot, a.rowptr[r], a.rowptr[r + 1], sink);
    }
  }
}

template <typename T>
PYG_SPARSE_CLONES void sddmm_range(const Csr& a, const SddmmArgs& args, int64_t first, int64_t last) {
  // Items are consecutive in entries, so a range of items is a range of entries walked row by row.
  const int64_t begin = entries_before(a, first), end = entries_before(a, last);
  int64_t r = std::upper_bound(a.rowptr, a.rowptr + a.rows + 1, begin) - a.rowptr - 1;
  for (; r < a.rows && a.rowptr[r] < end; ++r) {
    dot_entries<T>(args, a.col, a.slot, a.row[r], std::max(begin, a.rowptr[r]), std::min(end, a.rowptr[r + 1]));
  }
}

}  // namespace

void spmm(const Csr& a, const SpmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    (weighted(args) ? spmm_range<T, true> : spmm_range<T, false>)(a, args, first_item, last_item);
  });
}

void sddmm(const Csr& a, const SddmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) { sddmm_range<typename decltype(tag)::type>(a, args, first_item, last_item); });
}

}  // namespace pyg_sparse::cpu
