// Scaled rows of x.
#pragma once

#include "lanes.h"
#include "pyg_sparse/scale.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

template <typename T>
void scale_range(const ScaleArgs& args, int64_t first, int64_t last) {
  using A = Accumulate<T>;
  constexpr int kLanes = kVectorBytes / sizeof(A);
  for (int64_t i = first; i < last; ++i) {
    const A scale = static_cast<const A*>(args.scale)[i];
    const T* from = static_cast<const T*>(args.x) + i * args.ldx;
    T* to = static_cast<T*>(args.out) + i * args.k;
    int64_t k = 0;
    for (; k + kLanes <= args.k; k += kLanes) store<T, kLanes>(to + k, scale * load<T, kLanes>(from + k));
    for (; k < args.k; ++k) to[k] = narrow<T>(scale * widen(from[k]));
  }
}

inline void scale_rows(const ScaleArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { scale_range<typename decltype(tag)::type>(args, first, last); });
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
