// One binary for every x86-64: functions marked PYG_SPARSE_CLONES are compiled for the baseline, AVX2 and AVX-512 and
// the loader picks one. Everything they call must be inlined into them to be vectorized, hence PYG_SPARSE_INLINE.
#pragma once

#if defined(__GNUC__)
#define PYG_SPARSE_INLINE inline __attribute__((always_inline))
#define PYG_SPARSE_LAMBDA_INLINE __attribute__((always_inline))
#else
#define PYG_SPARSE_INLINE inline
#define PYG_SPARSE_LAMBDA_INLINE
#endif

#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define PYG_SPARSE_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PYG_SPARSE_CLONES
#endif
