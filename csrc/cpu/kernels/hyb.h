// The runs of hyb's ELL rows, without their padding.
#pragma once

#include "pyg_sparse/hyb.h"
#include "row.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

// Calls visit(run) for the ELL rows first .. last. A run does not look further than its bucket.
template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Hyb& a, int64_t first, int64_t last, int64_t, const Visitor& visit) {
  for (int64_t e = first; e < last;) {
    const int64_t index = bucket_index(a, e);
    const HybBucket bucket = a.bucket[index];
    const int64_t stop = index + 1 == a.buckets ? last : std::min(last, a.bucket[index + 1].first_row);
    const int64_t bucket_end = bucket.first_entry + (stop - bucket.first_row) * bucket.width;
    for (; e < stop; ++e) {
      const int64_t begin = bucket.first_entry + (e - bucket.first_row) * bucket.width;
      int64_t end = begin + bucket.width;
      while (end > begin && a.col[end - 1] < 0) --end;
      visit(Run{begin, end, bucket_end, a.row[e], a.partial[e], std::min(e + kRowsAhead, a.ell_rows - 1)});
    }
  }
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
