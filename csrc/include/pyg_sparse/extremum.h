// The largest or smallest message of every row, and the position of its entry.
#pragma once

#include "pyg_sparse/coo.h"
#include "pyg_sparse/csr.h"
#include "pyg_sparse/hyb.h"

namespace pyg_sparse {

// out[i, k] = the extremum over e of value[e] * x[col, k], arg[i, k] = the stored position of the first entry that has
// it; 0 and -1 in a row without entries. A NaN beats every number. Null pointers mean "absent".
// The largest is searched for: for the smallest, messages change their sign (exactly) and so does the result. In
// partials they keep the changed sign.
struct ExtremumArgs {
  DType dtype;
  bool largest;
  int64_t k;
  const void* x;
  int64_t ldx;
  const void* value = nullptr;
  void* out;
  int64_t* arg;
  void* partial = nullptr;         // [number of partials, k], Accumulate<dtype>
  int64_t* partial_arg = nullptr;  // [number of partials, k]
};

#ifdef __CUDACC__
#define PYG_SPARSE_BOTH __host__ __device__
#else
#define PYG_SPARSE_BOTH
#endif

// Whether a later message takes the place of the best so far. One that is NaN stays.
template <typename A>
PYG_SPARSE_BOTH constexpr bool beats(A message, A best) {
  return !(message <= best) && best == best;
}

#undef PYG_SPARSE_BOTH

namespace cuda {
int extremum(const Csr& a, int64_t nnz, const ExtremumArgs& args, void* stream);
int extremum(const Coo& a, int64_t nnz, const ExtremumArgs& args, void* stream);
int extremum(const Hyb& a, int64_t nnz, const ExtremumArgs& args, void* stream);
int combine_extremum(const SharedRows& shared, const ExtremumArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
