// The second pass of an spmm that left partials: add the partial sums of shared rows in a fixed order and apply the
// epilogue.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse {

namespace cuda {
int combine(const SharedRows& shared, const SpmmArgs& args, void* stream);
const char* error_string(int error);
}  // namespace cuda

}  // namespace pyg_sparse
