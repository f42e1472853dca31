// The second pass of an spmm that left partials.
#pragma once

#include "row_sum.h"

namespace pyg_sparse::cpu::PYG_SPARSE_ISA {

template <typename T>
void combine_range(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last) {
  using A = Accumulate<T>;
  constexpr int kLanes = kVectorBytes / sizeof(A);
  const A* partial = static_cast<const A*>(args.partial);
  const auto sum = [&]<int kCount>(int64_t i, int64_t k, std::integral_constant<int, kCount>) PYG_SPARSE_LAMBDA_INLINE {
    Lanes<A, kCount> total[1] = {};
    for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) total[0] += load<A, kCount>(partial + p * args.k + k);
    write_sum<T, kCount, 1>(args, false, shared.row[i], -1, k, total);
    return kCount;
  };
  for (int64_t i = first; i < last; ++i) {
    int64_t k = 0;
    while (args.k - k >= kLanes) k += sum(i, k, std::integral_constant<int, kLanes>{});
    while (k < args.k) k += sum(i, k, std::integral_constant<int, 1>{});
  }
}

inline void combine(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last) {
  visit_dtype(args.dtype, [&](auto tag) { combine_range<typename decltype(tag)::type>(shared, args, first, last); });
  if (args.stream) stream_fence();
}

}  // namespace pyg_sparse::cpu::PYG_SPARSE_ISA
