#include <cuda_runtime.h>

#include <limits>

#include "pyg_sparse/vote.h"

namespace pyg_sparse::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kBlock = 256;
static_assert(kSamples == kWarp - 1, "the last lane votes for the row's own label");

// A warp a row, a vote a lane.
__global__ void vote_kernel(VoteArgs args) {
  const int64_t r = (static_cast<int64_t>(blockIdx.x) * kBlock + threadIdx.x) / kWarp;
  if (r >= args.rows) return;
  const int lane = threadIdx.x % kWarp;
  const int64_t begin = args.rowptr[r], length = args.rowptr[r + 1] - begin;
  const int32_t row = args.row[r];
  const bool own = lane == kSamples;
  const int32_t node = own || lane >= length ? row : args.col[begin + sampled(args.seed, row, lane, length)];
  const bool votes = own || node != row;
  const unsigned voters = __ballot_sync(~0u, votes);
  if (!votes) return;
  const int32_t label = args.label[node];
  const int count = __popc(__match_any_sync(voters, label));
  const uint32_t mine = standing(count, label, args.seed);
  const uint32_t best = __reduce_max_sync(voters, mine);
  const unsigned winners = __ballot_sync(voters, mine == best);
  if (lane == __ffs(winners) - 1) args.new_label[row] = label;
}

}  // namespace

int vote(const VoteArgs& args, void* stream) {
  if (args.rows == 0) return cudaSuccess;
  const int64_t blocks = (args.rows + kBlock / kWarp - 1) / (kBlock / kWarp);
  if (blocks > std::numeric_limits<int32_t>::max()) return cudaErrorInvalidConfiguration;
  vote_kernel<<<static_cast<unsigned>(blocks), kBlock, 0, static_cast<cudaStream_t>(stream)>>>(args);
  return cudaGetLastError();
}

}  // namespace pyg_sparse::cuda
