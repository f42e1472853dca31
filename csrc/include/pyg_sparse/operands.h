// What every format's kernels take besides the format itself.
#pragma once

#include <cstdint>

#include "pyg_sparse/dtype.h"

namespace pyg_sparse {

// Position in a format -> the caller's edge. int64 from 2^31 edges on.
struct SlotMap {
  const void* edge;  // null: the plan keeps no slot map, and values are in the order of positions
  bool wide;
};

// The entries of each row in the order of positions; none for formats that cut rows to pieces.
struct RowRuns {
  int64_t rows;
  const int64_t* rowptr;  // [rows + 1]
};

// Rows that no single work item sums: row[i] gathers partials ptr[i] .. ptr[i + 1].
// A row without entries has none and receives only its self term and bias.
struct SharedRows {
  int64_t count;
  const int32_t* row;
  const int64_t* ptr;
};

// out[i] = relu(row_scale[i] * sum_e value[e] * col_scale[col] * x[col] + self_scale[i] * self[i] + bias)
// Dense matrices are row-major with unit stride inside a row. Null pointers mean "absent".
// value has x's dtype; scales, bias and partial have Accumulate<dtype>.
// The k features are heads blocks of equal width, each with its own value for an edge: on the CPU value[edge, head], in
// the caller's order of edges; on CUDA value[head, position], which gather_values has brought into the format's. Values
// that are stored came in the format's order, with one head.
struct SpmmArgs {
  DType dtype;
  int64_t k;
  int64_t heads;
  int64_t num_cols;
  const void* x;
  int64_t ldx;       // a row's stride in bytes is below 2^32
  const void* self;  // x itself, also where x above is a scaled copy
  int64_t ldself;
  void* out;
  const void* value = nullptr;
  bool stored = false;
  int64_t positions = 0;  // of the format
  const void* row_scale = nullptr;
  const void* col_scale = nullptr;
  const void* self_scale = nullptr;
  const void* bias = nullptr;  // [k]
  bool relu = false;
  void* partial = nullptr;  // [partials, k]
  int64_t partials = 0;
  // On the CPU only. The features at work, of one head: first .. last, and x begins with the first of them.
  int64_t first = 0;
  int64_t last = 0;  // 0: all features
  bool prefetch = false;
  bool stream = false;  // results past the caches: each head of a row is whole lines
};

// out[slot[p], h] = row_scale[row] * col_scale[col] * <q[row, h], key[col, h]> for each stored position p and head h,
// where the k features are heads blocks of equal width.
struct SddmmArgs {
  DType dtype;
  int64_t k;
  int64_t heads;
  const void* q;
  int64_t ldq;
  const void* key;
  int64_t ldk;
  void* out;
  const void* row_scale = nullptr;
  const void* col_scale = nullptr;
  bool grouped = false;  // the edges of each row lie side by side in the caller's order
};

}  // namespace pyg_sparse
