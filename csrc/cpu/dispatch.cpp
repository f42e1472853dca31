#include <cstdlib>
#include <stdexcept>
#include <string>

#include "isa/choice.h"
#include "pyg_sparse/cpu.h"

namespace pyg_sparse::cpu {

namespace baseline {
extern const Kernels kKernels;
}
#ifdef PYG_SPARSE_X86_64_SETS
namespace x86_64_v3 {
extern const Kernels kKernels;
}
namespace x86_64_v4 {
extern const Kernels kKernels;
}
#endif

namespace {

InstructionSet choose() {
  const char* wanted = std::getenv("PYG_SPARSE_CPU");
  std::string names;
  const auto take = [&](const InstructionSet& set, bool runs) {
    if (!runs) return false;
    names += names.empty() ? set.name : std::string(", ") + set.name;
    return !wanted || !*wanted || std::string(wanted) == set.name;
  };
#ifdef PYG_SPARSE_X86_64_SETS
  __builtin_cpu_init();
  const InstructionSet v4{"x86-64-v4", &x86_64_v4::kKernels}, v3{"x86-64-v3", &x86_64_v3::kKernels};
  if (take(v4, __builtin_cpu_supports("x86-64-v4"))) return v4;
  if (take(v3, __builtin_cpu_supports("x86-64-v3"))) return v3;
#endif
  const InstructionSet any{"baseline", &baseline::kKernels};
  if (take(any, true)) return any;
  throw std::runtime_error("PYG_SPARSE_CPU is " + std::string(wanted) + "; this processor and build allow " + names);
}

}  // namespace

const InstructionSet& instruction_set() {
  static const InstructionSet chosen = choose();
  return chosen;
}

}  // namespace pyg_sparse::cpu
