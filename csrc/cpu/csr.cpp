#include "pyg_sparse/csr.h"

#include "row_dot.h"

namespace pyg_sparse::cpu {
namespace {

template <typename T, typename S>
PYG_SPARSE_CLONES void spmm_range(const Csr& a, const SpmmArgs& given, Block block) {
  const SpmmArgs args = given;  // nothing that is written can be part of this copy
  const int64_t end = entries_before(a, block.until);
  for (int64_t item = block.first; item < block.last; ++item) {
    const bool part = item < a.parts;
    const int64_t r = a.long_rows + item - a.parts;
    const int64_t* bounds = part ? a.part_ptr + item : a.rowptr + r;
    const Sink<T> sink{args, part ? 0 : a.row[r], part ? item : -1};
    sum_entries<T, S>(args, block, a.col, a.slot, Run{bounds[0], bounds[1], end}, sink);
  }
}

template <typename T>
PYG_SPARSE_CLONES void sddmm_range(const Csr& a, const SddmmArgs& given, int64_t first, int64_t last) {
  const SddmmArgs args = given;  // nothing that is written can be part of this copy
  // Items are consecutive in entries, so a range of items is a range of entries walked row by row.
  const int64_t begin = entries_before(a, first), end = entries_before(a, last);
  int64_t r = std::upper_bound(a.rowptr, a.rowptr + a.rows + 1, begin) - a.rowptr - 1;
  for (; r < a.rows && a.rowptr[r] < end; ++r) {
    dot_entries<T>(args, a.col, a.slot, a.row[r],
                   Run{std::max(begin, a.rowptr[r]), std::min(end, a.rowptr[r + 1]), end});
  }
}

}  // namespace

void spmm(const Csr& a, const SpmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_blocks(args, first_item, last_item,
               [&](auto shape, const Block& block) { spmm_range<T, decltype(shape)>(a, args, block); });
  });
}

void sddmm(const Csr& a, const SddmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) { sddmm_range<typename decltype(tag)::type>(a, args, first_item, last_item); });
}

}  // namespace pyg_sparse::cpu
