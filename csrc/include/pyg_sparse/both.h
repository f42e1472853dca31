// PYG_SPARSE_BOTH marks a function that kernels of the CPU and of CUDA share.
#pragma once

#ifdef __CUDACC__
#define PYG_SPARSE_BOTH __host__ __device__
#else
#define PYG_SPARSE_BOTH
#endif
