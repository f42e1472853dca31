#include "pyg_sparse/combine.h"

#include "row_sum.h"

namespace pyg_sparse::cpu {
namespace {

template <typename T>
PYG_SPARSE_CLONES void combine_range(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last) {
  using A = Accumulate<T>;
  constexpr int kWidth = 64;
  const A* partial = static_cast<const A*>(args.partial);
  for (int64_t i = first; i < last; ++i) {
    const Sink<T> sink{args, shared.row[i], -1};
    for (int64_t k = 0; k < args.k; k += kWidth) {
      const int width = static_cast<int>(std::min<int64_t>(kWidth, args.k - k));
      A sum[kWidth] = {};
      for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) {
        for (int j = 0; j < width; ++j) sum[j] += partial[p * args.k + k + j];
      }
      sink(k, width, sum);
    }
  }
}

}  // namespace

void combine(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { combine_range<typename decltype(tag)::type>(shared, args, first, last); });
}

}  // namespace pyg_sparse::cpu
