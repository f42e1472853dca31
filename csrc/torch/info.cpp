// build_info: what this library was compiled with, as JSON, for `python -m pyg_sparse info`.
#include "pyg_sparse/cpu.h"
#include "pyg_sparse/slices.h"
#include "registry.h"

#ifdef PYG_SPARSE_CUDA
#include <cuda_runtime_api.h>
#endif

namespace pyg_sparse::torch_binding {
namespace {

std::string build_info() {
#ifdef PYG_SPARSE_CUDA
  const std::string version = std::to_string(CUDART_VERSION / 1000) + "." + std::to_string(CUDART_VERSION % 1000 / 10);
  const std::string cuda =
      R"("cuda": true, "cuda_version": ")" + version + R"(", "arches": ")" PYG_SPARSE_ARCHES R"(")";
#else
  const std::string cuda = R"("cuda": false, "cuda_version": null, "arches": "")";
#endif
  const std::string cpu = R"(, "cpu": ")" + std::string(cpu::instruction_set().name) + R"(", "l2_bytes": )" +
                          std::to_string(cpu::caches().own) + R"(, "l3_bytes": )" +
                          std::to_string(cpu::caches().shared);
  return "{" + cuda + cpu + R"(, "torch_target": "2.11", "compiler": ")" + __VERSION__ + R"("})";
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CompositeExplicitAutograd, m) {
  m.impl("build_info", TORCH_BOX(&pyg_sparse::torch_binding::build_info));
}
