// Checks an index that a file may have got wrong, in one pass.
#pragma once

#include <cstdint>

namespace pyg_sparse::cpu {

// Whether index holds each of 0 .. size - 1 exactly once, where col is not negative; col may be null: everywhere.
template <typename Index>
bool each_once(const Index* index, const int32_t* col, int64_t count, int64_t size);

}  // namespace pyg_sparse::cpu
