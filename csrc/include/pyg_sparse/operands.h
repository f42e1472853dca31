// What every format's kernels take besides the format itself.
#pragma once

#include <cstdint>

#include "pyg_sparse/dtype.h"

namespace pyg_sparse {

// Position in a format -> the caller's edge. int64 from 2^31 edges on.
struct SlotMap {
  const void* edge;  // null: the plan keeps no slot map
  bool wide;
};

// Rows that no single work item sums: row[i] gathers partials ptr[i] .. ptr[i + 1].
// A row without entries has none and receives only its self term.
struct SharedRows {
  int64_t count;
  const int32_t* row;
  const int64_t* ptr;
};

// out[i] = row_scale[i] * sum_e value[e] * col_scale[col] * x[col] + self_scale[i] * self[i]
// Dense matrices are row-major with unit stride inside a row. Null pointers mean "absent".
// value has x's dtype; scales and partial have Accumulate<dtype>.
struct SpmmArgs {
  DType dtype;
  int64_t k;
  const void* x;
  int64_t ldx;
  const void* self;  // x itself, also where x above is a scaled copy
  int64_t ldself;
  void* out;
  const void* value;
  const void* row_scale;
  const void* col_scale;
  const void* self_scale;
  void* partial;  // [number of partials, k]
};

// out[slot[p]] = row_scale[row] * col_scale[col] * <q[row], key[col]> for each stored position p
struct SddmmArgs {
  DType dtype;
  int64_t k;
  const void* q;
  int64_t ldq;
  const void* key;
  int64_t ldk;
  void* out;
  const void* row_scale;
  const void* col_scale;
};

}  // namespace pyg_sparse
