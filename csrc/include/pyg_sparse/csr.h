// Compressed sparse rows, stored in processing order; rows longer than a bound come first and are cut into parts.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

struct Csr {
  int64_t rows;
  const int64_t* rowptr;  // [rows + 1]
  const int32_t* row;     // [rows], row ids in processing order
  const int32_t* col;     // [nnz]
  SlotMap slot;           // [nnz]
  int64_t parts;
  const int64_t* part_ptr;    // [parts + 1]
  int64_t long_rows;          // rows 0 .. long_rows - 1 are cut into parts
  const int64_t* shared_ptr;  // [long_rows + 1]
  int64_t teams;              // long_rows, if a block of threads can sum each of them at once; else 0
  const int64_t* team_ptr;    // [teams + 1], entries
  int64_t tiles;
  const int64_t* tile_ptr;  // [tiles + 1], rows; without tiles, spmm with one feature has no kernel of its own
  int64_t tile_parts;
  const int64_t* tile_part_ptr;    // [tile_parts + 1]
  int64_t tile_long_rows;          // rows in no tile, the first, which are cut into parts
  const int64_t* tile_shared_ptr;  // [tile_long_rows + 1]
};

// Most entries in a tile of several rows (pyg_sparse/formats/tiles.py).
constexpr int kTileEntries = 2048;

// A work item is a part of a long row or a whole short row.
inline int64_t items(const Csr& a) { return a.parts + a.rows - a.long_rows; }
inline int64_t entries_before(const Csr& a, int64_t item) {
  return item < a.parts ? a.part_ptr[item] : a.rowptr[a.long_rows + item - a.parts];
}
inline SharedRows shared_rows(const Csr& a) { return {a.long_rows, a.row, a.shared_ptr}; }
inline SharedRows shared_rows_of_tiles(const Csr& a) { return {a.tile_long_rows, a.row, a.tile_shared_ptr}; }
inline RowRuns row_runs(const Csr& a) { return {a.rows, a.rowptr}; }

namespace cuda {
int spmm(const Csr& a, const SpmmArgs& args, void* stream);
int sddmm(const Csr& a, int64_t nnz, const SddmmArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
