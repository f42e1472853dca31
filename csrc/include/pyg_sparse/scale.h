// Scales the rows of x before a product: one pass over x costs less than reading a scale for every entry.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

// out[i, :] = scale[i] * x[i, :], out contiguous; scale has Accumulate<dtype>.
struct ScaleArgs {
  DType dtype;
  int64_t rows;
  int64_t k;
  const void* x;
  int64_t ldx;
  const void* scale;
  void* out;
};

namespace cuda {
int scale_rows(const ScaleArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
