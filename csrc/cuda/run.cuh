// The formats whose work item is one run of entries: where the run of an item lies, and where its sum goes.
#pragma once

#include "epilogue.cuh"
#include "pyg_sparse/csr.h"
#include "pyg_sparse/hyb.h"

namespace pyg_sparse::cuda {

// Positions of the entries.
struct Bounds {
  int64_t begin, end;
};

// The first items, which are long.
inline int64_t parts_of(const Csr& a) { return a.parts; }
inline int64_t parts_of(const Hyb&) { return 0; }
// Rows that those parts make up, if a block of threads sums each of them at once.
inline int64_t teams_of(const Csr& a) { return a.teams; }
inline int64_t teams_of(const Hyb&) { return 0; }

__device__ inline Bounds bounds_of(const Csr& a, int64_t item) {
  const int64_t* bound = item < a.parts ? a.part_ptr + item : a.rowptr + a.long_rows + item - a.parts;
  return {bound[0], bound[1]};
}
__device__ inline Target target_of(const Csr& a, int64_t item) {
  if (item < a.parts) return {-1, static_cast<int32_t>(item)};
  return {a.row[a.long_rows + item - a.parts], -1};
}

__device__ inline Bounds bounds_of(const Hyb& a, int64_t item) {
  const HybBucket bucket = a.bucket[bucket_index(a, item)];
  const int64_t begin = bucket.first_entry + (item - bucket.first_row) * bucket.width;
  return {begin, begin + bucket.width};
}
__device__ inline Target target_of(const Hyb& a, int64_t item) { return {a.row[item], a.partial[item]}; }

}  // namespace pyg_sparse::cuda
