// For every processor of the architecture: on x86-64 SSE2, on 64-bit ARM NEON.
#include "shared.h"

#define PYG_SPARSE_ISA baseline
namespace pyg_sparse::cpu::baseline {
constexpr int kVectorBytes = 16;
}
#include "kernels.h"
