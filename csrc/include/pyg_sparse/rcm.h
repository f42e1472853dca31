// Reverse Cuthill-McKee (Cuthill and McKee 1969, George 1971): rows by breadth-first search, so that rows that share
// columns come soon after each other. On the CPU alone: a search has no parallelism to speak of in long, thin graphs.
#pragma once

#include <cstdint>

namespace pyg_sparse::cpu {

struct RcmArgs {
  int64_t rows;           // of a square matrix, by descending length
  const int64_t* rowptr;  // [rows + 1]
  const int32_t* row;     // [rows], row ids
  const int32_t* col;     // [rows' entries]
  int64_t* order;         // [rows], stored rows in the new order
};

// Each component is searched from its shortest row, and a row's unvisited columns are taken by ascending length.
void rcm(const RcmArgs& args);

}  // namespace pyg_sparse::cpu
