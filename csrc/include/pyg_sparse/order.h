// Moves edge values between the caller's order and a format's.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

// to[head, p] = from[slot[p], head]: products then read values in sequence, as often as they cut K into slices. In
// padding slot is 0, and so to is never uninitialized.
struct GatherArgs {
  DType dtype;
  int64_t positions;
  int64_t heads;
  SlotMap slot;
  const void* from;
  void* to;
};

// to[slot[p]] = from[p], without padding. The edges of each row lie side by side.
struct ScatterArgs {
  DType dtype;
  RowRuns runs;
  SlotMap slot;
  const void* from;
  void* to;
};

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
