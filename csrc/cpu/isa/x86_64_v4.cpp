// For x86-64 with AVX-512.
#include "choice.h"
#ifdef PYG_SPARSE_X86_64_SETS
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // of _mm512_undefined_ps, in GCC's own header
#include "shared.h"

#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
#define PYG_SPARSE_ISA x86_64_v4
namespace pyg_sparse::cpu::x86_64_v4 {
constexpr int kVectorBytes = 64;
}
#include "kernels.h"
#endif
