// The runs of CSR's items: parts of the long rows, which come first, and whole rows.
#pragma once

#include "pyg_sparse/csr.h"
#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

// The long row whose part this is.
PYG_SPARSE_INLINE int64_t row_of_part(const Csr& a, int64_t part) {
  int64_t low = 0;
  for (int64_t high = a.long_rows; high - low > 1;) {
    const int64_t middle = (low + high) / 2;
    (a.shared_ptr[middle] <= part ? low : high) = middle;
  }
  return low;
}

// Calls visit(run) for the items first .. last of a range that ends with the item `until`.
template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Csr& a, int64_t first, int64_t last, int64_t until, const Visitor& visit) {
  const int64_t end = entries_before(a, until);
  int64_t item = first, r = first < a.parts ? row_of_part(a, first) : 0;
  for (; item < std::min(last, a.parts); ++item) {
    while (a.shared_ptr[r + 1] <= item) ++r;
    visit(Run{a.part_ptr[item], a.part_ptr[item + 1], end, a.row[r], item, r});
  }
  for (; item < last; ++item) {
    r = a.long_rows + item - a.parts;
    visit(Run{a.rowptr[r], a.rowptr[r + 1], end, a.row[r], -1, std::min(r + kRowsAhead, a.rows - 1)});
  }
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
