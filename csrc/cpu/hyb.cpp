#include "pyg_sparse/hyb.h"

#include "row_dot.h"

namespace pyg_sparse::cpu {
namespace {

// Calls visit(ell_row, run) for each ELL row, without its padding.
template <typename Visitor>
PYG_SPARSE_INLINE void for_each_row(const Hyb& a, int64_t first, int64_t last, const Visitor& visit) {
  for (int64_t e = first; e < last;) {
    const HybBucket bucket = bucket_of(a, e);
    const HybBucket* next = std::upper_bound(a.bucket, a.bucket + a.buckets, e,
                                             [](int64_t row, const HybBucket& b) { return row < b.first_row; });
    const int64_t stop = next == a.bucket + a.buckets ? last : std::min(last, next->first_row);
    for (; e < stop; ++e) {
      const int64_t begin = bucket.first_entry + (e - bucket.first_row) * bucket.width;
      int64_t end = begin + bucket.width;
      while (end > begin && a.col[end - 1] < 0) --end;
      visit(e, Run{begin, end, bucket.first_entry + (stop - bucket.first_row) * bucket.width});
    }
  }
}

template <typename T, typename S>
PYG_SPARSE_CLONES void spmm_range(const Hyb& a, const SpmmArgs& given, Block block) {
  const SpmmArgs args = given;  // nothing that is written can be part of this copy
  for_each_row(a, block.first, block.last, [&](int64_t e, Run run) PYG_SPARSE_LAMBDA_INLINE {
    sum_entries<T, S>(args, block, a.col, a.slot, run, Sink<T>{args, a.row[e], a.partial[e]});
  });
}

template <typename T>
PYG_SPARSE_CLONES void sddmm_range(const Hyb& a, const SddmmArgs& given, int64_t first, int64_t last) {
  const SddmmArgs args = given;  // nothing that is written can be part of this copy
  for_each_row(a, first, last, [&](int64_t e, Run run) PYG_SPARSE_LAMBDA_INLINE {
    dot_entries<T>(args, a.col, a.slot, a.row[e], run);
  });
}

}  // namespace

void spmm(const Hyb& a, const SpmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_blocks(args, first_item, last_item,
               [&](auto shape, const Block& block) { spmm_range<T, decltype(shape)>(a, args, block); });
  });
}

void sddmm(const Hyb& a, const SddmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) { sddmm_range<typename decltype(tag)::type>(a, args, first_item, last_item); });
}

}  // namespace pyg_sparse::cpu
