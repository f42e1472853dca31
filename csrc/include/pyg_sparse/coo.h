// Entries sorted by processing order of their row, cut into chunks of equal size.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

struct Coo {
  const int32_t* row;  // [nnz]
  const int32_t* col;  // [nnz]
  SlotMap slot;        // [nnz]
  int64_t chunks;
  const int64_t* chunk_ptr;  // [chunks + 1]
  const int32_t* head;       // [chunks], partial of the chunk's first row, -1: the chunk holds the whole row
  const int32_t* tail;       // [chunks], the same of its last row, where that is not also the first
  SharedRows shared;         // rows that cross a chunk border, and rows without entries
};

inline int64_t items(const Coo& a) { return a.chunks; }
inline int64_t entries_before(const Coo& a, int64_t item) { return a.chunk_ptr[item]; }
inline SharedRows shared_rows(const Coo& a) { return a.shared; }
inline RowRuns row_runs(const Coo&) { return {}; }

namespace cuda {
int spmm(const Coo& a, const SpmmArgs& args, void* stream);
int sddmm(const Coo& a, int64_t nnz, const SddmmArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
