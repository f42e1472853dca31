#include "pyg_sparse/coo.h"

#include "row_dot.h"

namespace pyg_sparse::cpu {
namespace {

// Calls visit(row, begin, end, is_first, is_last) for each run of equal rows in a chunk.
template <typename Visitor>
PYG_SPARSE_INLINE void for_each_run(const Coo& a, int64_t chunk, const Visitor& visit) {
  const int64_t first = a.chunk_ptr[chunk], last = a.chunk_ptr[chunk + 1];
  for (int64_t begin = first, end; begin < last; begin = end) {
    const int32_t row = a.row[begin];
    for (end = begin + 1; end < last && a.row[end] == row;) ++end;
    visit(row, begin, end, begin == first, end == last);
  }
}

template <typename T, typename S>
PYG_SPARSE_CLONES void spmm_range(const Coo& a, const SpmmArgs& given, Block block) {
  const SpmmArgs args = given;  // nothing that is written can be part of this copy
  for (int64_t chunk = block.first; chunk < block.last; ++chunk) {
    for_each_run(a, chunk,
                 [&](int32_t row, int64_t begin, int64_t end, bool is_first, bool is_last) PYG_SPARSE_LAMBDA_INLINE {
                   const int64_t partial = is_first ? a.head[chunk] : is_last ? a.tail[chunk] : -1;
                   sum_entries<T, S>(args, block, a.col, a.slot, Run{begin, end, a.chunk_ptr[block.until]},
                                     Sink<T>{args, row, partial});
                 });
  }
}

template <typename T>
PYG_SPARSE_CLONES void sddmm_range(const Coo& a, const SddmmArgs& given, int64_t first, int64_t last) {
  const SddmmArgs args = given;  // nothing that is written can be part of this copy
  for (int64_t chunk = first; chunk < last; ++chunk) {
    for_each_run(a, chunk, [&](int32_t row, int64_t begin, int64_t end, bool, bool) PYG_SPARSE_LAMBDA_INLINE {
      dot_entries<T>(args, a.col, a.slot, row, Run{begin, end, a.chunk_ptr[last]});
    });
  }
}

}  // namespace

void spmm(const Coo& a, const SpmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_blocks(args, first_item, last_item,
               [&](auto shape, const Block& block) { spmm_range<T, decltype(shape)>(a, args, block); });
  });
}

void sddmm(const Coo& a, const SddmmArgs& args, int64_t first_item, int64_t last_item) {
  visit_dtype(args.dtype, [&](auto tag) { sddmm_range<typename decltype(tag)::type>(a, args, first_item, last_item); });
}

}  // namespace pyg_sparse::cpu
