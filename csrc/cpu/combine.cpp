#include "pyg_sparse/combine.h"

#include "row_sum.h"

namespace pyg_sparse::cpu {
namespace {

template <typename T>
PYG_SPARSE_CLONES void combine_range(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last) {
  using A = Accumulate<T>;
  const A* partial = static_cast<const A*>(args.partial);
  const auto sum = [&]<int kLanes>(int64_t i, int64_t k, std::integral_constant<int, kLanes>) PYG_SPARSE_LAMBDA_INLINE {
    Lanes<A, kLanes> total = {};
    for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) total += load<A, kLanes>(partial + p * args.k + k);
    Sink<T>{args, shared.row[i], -1}.template write<kLanes>(k, total);
    return kLanes;
  };
  for (int64_t i = first; i < last; ++i) {
    int64_t k = 0;
    while (args.k - k >= 16) k += sum(i, k, std::integral_constant<int, 16>{});
    if (args.k - k >= 8) k += sum(i, k, std::integral_constant<int, 8>{});
    if (args.k - k >= 4) k += sum(i, k, std::integral_constant<int, 4>{});
    while (k < args.k) k += sum(i, k, std::integral_constant<int, 1>{});
  }
}

}  // namespace

void combine(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { combine_range<typename decltype(tag)::type>(shared, args, first, last); });
}

}  // namespace pyg_sparse::cpu
