// For x86-64 with AVX2, FMA and F16C.
#include "choice.h"
#ifdef PYG_SPARSE_X86_64_SETS
#include "shared.h"

#pragma GCC target("arch=x86-64-v3")
#define PYG_SPARSE_ISA x86_64_v3
namespace pyg_sparse::cpu::x86_64_v3 {
constexpr int kVectorBytes = 32;
}
#include "kernels.h"
#endif
