// What the kernels use besides their own: compiled for any processor, whichever set's kernels it serves.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "pyg_sparse/cpu.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif
