// hyb(c, k) of SparseTIR (arXiv:2207.04606): columns in c partitions, the rows of each bucketed by length into ELL
// blocks of width 1, 2, 4, ... 2^k.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

struct HybBucket {
  int64_t first_row;    // index of its first ELL row
  int64_t first_entry;  // position of that row's first entry
  int64_t width;
};

struct Hyb {
  int64_t buckets;
  const HybBucket* bucket;  // [buckets], by increasing first_row
  int64_t ell_rows;
  const int32_t* row;      // [ell_rows], row id
  const int32_t* partial;  // [ell_rows], -1: this ELL row is the whole row
  const int32_t* col;      // [entries], -1 pads a row's end
  SlotMap slot;            // [entries]
  SharedRows shared;       // rows of several ELL rows, and rows without entries
};

#ifdef __CUDACC__
__host__ __device__
#endif
    inline int64_t bucket_index(const Hyb& a, int64_t ell_row) {
  int64_t low = 0;
  for (int64_t high = a.buckets; high - low > 1;) {
    const int64_t middle = (low + high) / 2;
    (a.bucket[middle].first_row <= ell_row ? low : high) = middle;
  }
  return low;
}

inline int64_t items(const Hyb& a) { return a.ell_rows; }
inline int64_t entries_before(const Hyb& a, int64_t item) {
  if (a.buckets == 0) return 0;
  const HybBucket b = a.bucket[bucket_index(a, item)];
  return b.first_entry + (item - b.first_row) * b.width;
}
inline SharedRows shared_rows(const Hyb& a) { return a.shared; }
inline RowRuns row_runs(const Hyb&) { return {}; }

namespace cuda {
int spmm(const Hyb& a, const SpmmArgs& args, void* stream);
int sddmm(const Hyb& a, int64_t nnz, const SddmmArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
