// The kernels are compiled once for each instruction set (csrc/cpu/isa), in the namespace PYG_SPARSE_ISA. Whatever they
// call is part of that namespace, or inlined: of a function that two instruction sets share, the linker keeps one.
#pragma once

#if defined(__GNUC__)
#define PYG_SPARSE_INLINE inline __attribute__((always_inline))
#define PYG_SPARSE_LAMBDA_INLINE __attribute__((always_inline))
#else
#define PYG_SPARSE_INLINE inline
#define PYG_SPARSE_LAMBDA_INLINE
#endif
