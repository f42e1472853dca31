// Defines the table of this instruction set's kernels. Included once in the file of each, which names the set
// (PYG_SPARSE_ISA) and tells the compiler of it, behind all headers whose functions the sets share.
#include "../kernels/combine.h"
#include "../kernels/coo.h"
#include "../kernels/csr.h"
#include "../kernels/hyb.h"
#include "../kernels/row_best.h"
#include "../kernels/row_dot.h"
#include "../kernels/row_sum.h"
#include "../kernels/scale.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

template <typename Format>
constexpr FormatKernels<Format> kFormat{spmm<Format>, sddmm<Format>, extremum<Format>};

extern const Kernels kKernels;
const Kernels kKernels{kFormat<Csr>, kFormat<Coo>, kFormat<Hyb>, combine, combine_extremum, scale_rows};

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
