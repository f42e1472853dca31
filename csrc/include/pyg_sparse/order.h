// Moves edge values between the caller's order and a format's.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

// to[head, p] = from[slot[p], head]: a product that reads values several times then reads them in sequence. In padding
// slot is 0, and so to is never uninitialized.
struct GatherArgs {
  DType dtype;
  int64_t positions;
  int64_t heads;
  SlotMap slot;
  const void* from;
  void* to;
};

// to[slot[p]] = from[p], without padding. The edges of most rows lie side by side.
struct ScatterArgs {
  DType dtype;
  RowRuns runs;
  SlotMap slot;
  const void* from;
  void* to;
};

// Whether spmm on CUDA reads a value more than once, or with a stride.
inline bool worth_gathering(const SpmmArgs& args) {
  constexpr int64_t kSliceBytes = 256;  // K is cut into slices of that at least
  const int64_t element_size = args.dtype == DType::kFloat64 ? 8 : args.dtype == DType::kFloat32 ? 4 : 2;
  return args.heads > 1 || args.k * element_size > kSliceBytes;
}

// Whether sddmm on CUDA writes a row's results in sequence first: rows long enough for a block of threads each.
inline bool worth_scattering(const SddmmArgs& args, const RowRuns& runs, int64_t positions) {
  constexpr int64_t kLongRow = 64;
  return args.grouped && args.heads == 1 && runs.rows > 0 && positions >= kLongRow * runs.rows;
}

namespace cuda {
int gather_values(const GatherArgs& args, void* stream);
int scatter_values(const ScatterArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
