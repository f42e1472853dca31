#include "pyg_sparse/row_features.h"

namespace pyg_sparse::cpu {

void row_features(const RowFeaturesArgs& args, int64_t first, int64_t last) {
  for (int64_t r = first; r < last; ++r) {
    args.store(args.row[r], args.of(args.row[r], args.rowptr[r], args.rowptr[r + 1], 1));
  }
}

}  // namespace pyg_sparse::cpu
