#include "pyg_sparse/scale.h"

#include "convert.h"

namespace pyg_sparse::cpu {
namespace {

template <typename T>
PYG_SPARSE_CLONES void scale_range(const ScaleArgs& args, int64_t first, int64_t last) {
  for (int64_t i = first; i < last; ++i) {
    const Accumulate<T> scale = static_cast<const Accumulate<T>*>(args.scale)[i];
    const T* from = static_cast<const T*>(args.x) + i * args.ldx;
    T* to = static_cast<T*>(args.out) + i * args.k;
    for (int64_t k = 0; k < args.k; ++k) to[k] = narrow<T>(scale * widen(from[k]));
  }
}

}  // namespace

void scale_rows(const ScaleArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { scale_range<typename decltype(tag)::type>(args, first, last); });
}

}  // namespace pyg_sparse::cpu
