#include "pyg_sparse/hyb.h"

#include "row_sum.h"

namespace pyg_sparse::cpu {
namespace {

struct Run {
  int64_t begin, end;
};

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
      visit(e, Run{begin, end});
    }
  }
}

template <typename T, bool kWeighted>
PYG_SPARSE_CLONES void spmm_range(const Hyb& a, const SpmmArgs& args, int64_t first, int64_t last) {
  for_each_row(a, first, last, [&](int64_t e, Run run) __attribute__((always_inline)) {
    sum_entries<T, kWeighted>(args, a.col, a.slot, run.begin, run.end, Sink<T>{args, a.row[e], a.partial[e]});
  });
}

template <typename T>
PYG_SPARSE_CLONES void sddmm_range(const Hyb& a, const SddmmArgs& args, int64_t first, int64_t last) {
  for_each_row(a, first, last, [&](int64_t e, Run run) __attribute__((always_inline)) {
    dot_entries<T>(args, a.col, a.slot, a.row[e], run.begin, run.end);
  });
}

}  // namespace

void spmm(const Hyb& a, const SpmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    (weighted(args) ? spmm_range<T, true> : spmm_range<T, false>)(a, args, first_item, last_item);
  });
}

void sddmm(const Hyb& a, const SddmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) { sddmm_range<typename decltype(tag)::type>(a, args, first_item, last_item); });
}

}  // namespace pyg_sparse::cpu
