// Moves edge values between the caller's order and a format's.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

// runs: where they are given, the edges of most rows lie side by side. In padding slot is 0.
struct OrderArgs {
  DType dtype;
  int64_t positions;
  int64_t heads;
  SlotMap slot;
  RowRuns runs;
  const void* from;
  void* to;
};

// Whether spmm on CUDA reads a value more than once, or with a stride.
inline bool worth_ordering(const SpmmArgs& args) {
  constexpr int64_t kSliceBytes = 256;  // K is cut into slices of that at least
  const int64_t element_size = args.dtype == DType::kFloat64 ? 8 : args.dtype == DType::kFloat32 ? 4 : 2;
  return args.heads > 1 || args.k * element_size > kSliceBytes;
}

// Whether a row's values are worth a block of threads, which moves them in sequence on both sides.
inline bool worth_grouping(const RowRuns& runs, int64_t positions, int64_t heads) {
  constexpr int64_t kLongRow = 64;
  return runs.rows > 0 && heads == 1 && positions >= kLongRow * runs.rows;
}

namespace cuda {
// to[head, p] = from[slot[p], head]
int gather_values(const OrderArgs& args, void* stream);
// to[slot[p]] = from[p], for one head and without padding
int scatter_values(const OrderArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
