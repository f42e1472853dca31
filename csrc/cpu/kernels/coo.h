// The runs of COO's chunks: equal rows side by side.
#pragma once

#include "pyg_sparse/coo.h"
#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

// Calls visit(run) for the chunks first .. last of a range that ends with the chunk `until`.
template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Coo& a, int64_t first, int64_t last, int64_t until, const Visitor& visit) {
  const int64_t stop = a.chunk_ptr[until];
  for (int64_t chunk = first; chunk < last; ++chunk) {
    const int64_t from = a.chunk_ptr[chunk], to = a.chunk_ptr[chunk + 1];
    for (int64_t begin = from, end; begin < to; begin = end) {
      const int32_t row = a.row[begin];
      for (end = begin + 1; end < to && a.row[end] == row;) ++end;
      const int64_t partial = begin == from ? a.head[chunk] : end == to ? a.tail[chunk] : -1;
      visit(Run{begin, end, stop, row, partial, std::min(end + kRowsAhead * (end - begin), stop - 1)});
    }
  }
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
