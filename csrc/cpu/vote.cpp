#include "pyg_sparse/vote.h"

#include <algorithm>

namespace pyg_sparse::cpu {

void vote(const VoteArgs& args, int64_t first, int64_t last) {
  for (int64_t r = first; r < last; ++r) {
    const int64_t begin = args.rowptr[r], length = args.rowptr[r + 1] - begin;
    const int32_t row = args.row[r];
    int32_t label[kSamples + 1];
    int voters = 0;
    const int samples = static_cast<int>(std::min<int64_t>(length, kSamples));
    for (int i = 0; i < samples; ++i) {
      const int32_t node = args.col[begin + sampled(args.seed, static_cast<uint32_t>(row), i, length)];
      if (node != row) label[voters++] = args.label[node];
    }
    label[voters++] = args.label[row];
    uint32_t best = 0;
    for (int i = 0; i < voters; ++i) {
      const int votes = static_cast<int>(std::count(label, label + voters, label[i]));
      const uint32_t here = standing(votes, static_cast<uint32_t>(label[i]), args.seed);
      if (here <= best) continue;
      best = here;
      args.new_label[row] = label[i];
    }
  }
}

}  // namespace pyg_sparse::cpu
