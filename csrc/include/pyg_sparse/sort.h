// Stable counting sort of small integer keys: how edges are grouped by row on the CPU.
#pragma once

#include <cstdint>

namespace pyg_sparse::cpu {

// Per-block key counts: count[block * keys + key]. Blocks are independent.
template <typename Key>
void count_keys(const Key* key, int64_t begin, int64_t end, int64_t* count);

// Turns counts into each block's write offsets; ptr[keys + 1] receives where each key starts.
void offsets_from_counts(int64_t* count, int64_t blocks, int64_t keys, int64_t* ptr);

// Writes the positions begin .. end of a block in key order.
template <typename Key, typename Position>
void place(const Key* key, int64_t begin, int64_t end, int64_t* offset, Position* order);

}  // namespace pyg_sparse::cpu
