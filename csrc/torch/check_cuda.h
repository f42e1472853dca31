// Turns the error code of a launcher into an exception.
#pragma once

#include <torch/headeronly/util/Exception.h>

#include "pyg_sparse/combine.h"

namespace pyg_sparse::torch_binding {

inline void check_cuda([[maybe_unused]] int error, [[maybe_unused]] const char* what) {
#ifdef PYG_SPARSE_CUDA
  STD_TORCH_CHECK(error == 0, what, " failed: ", cuda::error_string(error));
#endif
}

}  // namespace pyg_sparse::torch_binding
