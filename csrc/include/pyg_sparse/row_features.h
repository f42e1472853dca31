// What the planner's features need of every row, in one pass over the entries (pyg_sparse/planner/by_row.py). All are
// integers, so CPU and CUDA agree whatever the order in which they add.
#pragma once

#include <cstdint>

#include "pyg_sparse/both.h"

namespace pyg_sparse {

// Of some entries of a row.
struct RowFeatures {
  int32_t low = INT32_MAX;  // least column
  int32_t high = -1;        // greatest column
  int64_t diagonal = 0;     // entries whose column is the row
  int64_t weight = 0;       // sum of the columns' weights

  PYG_SPARSE_BOTH void add(const RowFeatures& other) {
    low = other.low < low ? other.low : low;
    high = other.high > high ? other.high : high;
    diagonal += other.diagonal;
    weight += other.weight;
  }
};

// Results are by row id: low[row[r]], ... are those of stored row r. A row without entries has low 0 and high -1.
struct RowFeaturesArgs {
  int64_t rows;
  const int64_t* rowptr;
  const int32_t* row;
  const int32_t* col;
  const int64_t* weight;  // of each column
  int64_t* low;
  int64_t* high;
  int64_t* diagonal;
  int64_t* total;

  // Of every step-th entry from begin on.
  PYG_SPARSE_BOTH RowFeatures of(int32_t id, int64_t begin, int64_t end, int64_t step) const {
    RowFeatures found;
    for (int64_t e = begin; e < end; e += step) {
      const int32_t c = col[e];
      found.add({c, c, c == id, weight[c]});
    }
    return found;
  }

  PYG_SPARSE_BOTH void store(int32_t id, const RowFeatures& found) const {
    low[id] = found.high < 0 ? 0 : found.low;
    high[id] = found.high;
    diagonal[id] = found.diagonal;
    total[id] = found.weight;
  }
};

// For threads to share the entries evenly.
inline int64_t items(const RowFeaturesArgs& a) { return a.rows; }
inline int64_t entries_before(const RowFeaturesArgs& a, int64_t item) { return a.rowptr[item]; }

namespace cpu {
void row_features(const RowFeaturesArgs& args, int64_t first, int64_t last);
}  // namespace cpu

namespace cuda {
int row_features(const RowFeaturesArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
