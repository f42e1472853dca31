#include "pyg_sparse/sort.h"

namespace pyg_sparse::cpu {

template <typename Key>
void count_keys(const Key* key, int64_t begin, int64_t end, int64_t* count) {
  for (int64_t i = begin; i < end; ++i) ++count[key[i]];
}

void offsets_from_counts(int64_t* count, int64_t blocks, int64_t keys, int64_t* ptr) {
  int64_t total = 0;
  for (int64_t k = 0; k < keys; ++k) {
    ptr[k] = total;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t here = count[b * keys + k];
      count[b * keys + k] = total;
      total += here;
    }
  }
  ptr[keys] = total;
}

template <typename Key, typename Position>
void place(const Key* key, int64_t begin, int64_t end, int64_t* offset, Position* order) {
  for (int64_t i = begin; i < end; ++i) order[offset[key[i]]++] = static_cast<Position>(i);
}

template void count_keys(const int32_t*, int64_t, int64_t, int64_t*);
template void count_keys(const int64_t*, int64_t, int64_t, int64_t*);
template void place(const int32_t*, int64_t, int64_t, int64_t*, int32_t*);
template void place(const int32_t*, int64_t, int64_t, int64_t*, int64_t*);
template void place(const int64_t*, int64_t, int64_t, int64_t*, int32_t*);
template void place(const int64_t*, int64_t, int64_t, int64_t*, int64_t*);

}  // namespace pyg_sparse::cpu
