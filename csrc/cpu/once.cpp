#include "pyg_sparse/once.h"

#include <cstddef>
#include <vector>

namespace pyg_sparse::cpu {

template <typename Index>
bool each_once(const Index* index, const int32_t* col, int64_t count, int64_t size) {
  if (count < size) return false;  // also where size is absurd
  std::vector<uint64_t> seen(static_cast<std::size_t>(size / 64 + 1));
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (col && col[i] < 0) continue;
    const int64_t value = index[i];
    if (value < 0 || value >= size) return false;
    uint64_t& word = seen[static_cast<std::size_t>(value / 64)];
    const uint64_t bit = uint64_t{1} << value % 64;
    if (word & bit) return false;
    word |= bit;
    ++found;
  }
  return found == size;
}

template bool each_once(const int32_t*, const int32_t*, int64_t, int64_t);
template bool each_once(const int64_t*, const int32_t*, int64_t, int64_t);

}  // namespace pyg_sparse::cpu
