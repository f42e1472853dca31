// A round of label propagation on sampled neighbours (Raghavan et al. 2007): how communities are found for the order of
// rows (pyg_sparse/order.py). CPU and CUDA draw the same samples and break ties alike, so they agree.
#pragma once

#include <cstdint>

#include "pyg_sparse/both.h"

namespace pyg_sparse {

// new_label[row[r]] = the most frequent label among its own and those of up to kSamples sampled columns of stored row
// r. A row without entries keeps its label. Self-loops have no vote: where all labels still differ, a second one for
// the row's own would keep every label as it is.
struct VoteArgs {
  int64_t rows;
  const int64_t* rowptr;
  const int32_t* row;
  const int32_t* col;
  const int32_t* label;
  int32_t* new_label;
  uint32_t seed;
};

constexpr int kSamples = 31;

// The 32-bit finalizer of MurmurHash3.
PYG_SPARSE_BOTH inline uint32_t mix(uint32_t h) {
  h = (h ^ (h >> 16)) * 0x85ebca6bu;
  h = (h ^ (h >> 13)) * 0xc2b2ae35u;
  return h ^ (h >> 16);
}

// The entry that is row's sample i of a row of length entries, fewer than 2^32.
PYG_SPARSE_BOTH inline int64_t sampled(uint32_t seed, uint32_t row, uint32_t i, int64_t length) {
  if (length <= kSamples) return i;
  const uint64_t draw = mix(mix(seed ^ row * 0x9e3779b9u) + i);
  return static_cast<int64_t>(draw * static_cast<uint64_t>(length) >> 32);
}

// Votes decide, then a random order of labels.
PYG_SPARSE_BOTH inline uint32_t standing(int votes, uint32_t label, uint32_t seed) {
  return static_cast<uint32_t>(votes) << 26 | mix(label ^ mix(seed)) >> 6;
}

namespace cpu {
void vote(const VoteArgs& args, int64_t first, int64_t last);
}  // namespace cpu

namespace cuda {
int vote(const VoteArgs& args, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
