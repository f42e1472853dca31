// Brings edge values into a format's order: a product that reads them several times then reads them in sequence.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

// out[head, p] = value[slot[p], head]; both have dtype. In padding slot is 0, and so out is never uninitialized.
struct OrderArgs {
  DType dtype;
  int64_t positions;
  int64_t heads;
  SlotMap slot;
  const void* value;
  void* out;
};

// Whether spmm on CUDA reads a value more than once, or with a stride.
inline bool worth_ordering(const SpmmArgs& args) {
  constexpr int64_t kSliceBytes = 256;  // K is cut into slices of that at least
  const int64_t element_size = args.dtype == DType::kFloat64 ? 8 : args.dtype == DType::kFloat32 ? 4 : 2;
  return args.heads > 1 || args.k * element_size > kSliceBytes;
}

namespace cuda {
int order_values(const OrderArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
