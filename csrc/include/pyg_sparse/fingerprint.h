// A 128-bit hash of a list of pairs in its order: of edges, or of the words of a file. Pairs are hashed each with their
// position and the hashes are summed, so that any number of threads may share the work and every device finds the same.
// Meant against accidents, not against adversaries: it is no cryptographic hash.
#pragma once

#include <cstdint>

#include "pyg_sparse/both.h"

namespace pyg_sparse {

struct FingerprintArgs {
  int64_t pairs;
  const void* first;  // of each pair; int64 if wide, else int32
  const void* second;
  int64_t stride;  // from pair to pair, in elements
  bool wide;
};

struct Fingerprint {
  uint64_t low, high;

  PYG_SPARSE_BOTH void operator+=(const Fingerprint& other) {
    low += other.low;
    high += other.high;
  }
};

// A permutation of all 64-bit numbers: Stafford's 13th variant of MurmurHash3's finalizer.
PYG_SPARSE_BOTH inline uint64_t mix64(uint64_t h) {
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

// Either half mixes the pair's members in the other order. Two pairs that differ in one member only differ in both
// halves, since all steps are permutations of that member.
PYG_SPARSE_BOTH inline Fingerprint fingerprint_of(int64_t first, int64_t second, int64_t position) {
  const uint64_t place = static_cast<uint64_t>(position) * 0x9e3779b97f4a7c15u;
  const uint64_t a = static_cast<uint64_t>(first), b = static_cast<uint64_t>(second);
  return {mix64(mix64(place + a) + b), mix64(mix64(~place + b) + a)};
}

namespace cpu {
// The sum over the pairs from first to last, which may lie at any address: a mapped file's words do.
Fingerprint fingerprint(const FingerprintArgs& args, int64_t first, int64_t last);
}  // namespace cpu

namespace cuda {
// Adds the sum over all pairs to sums[0] (low) and sums[1] (high), on the device.
int fingerprint(const FingerprintArgs& args, uint64_t* sums, void* stream);
}  // namespace cuda

}  // namespace pyg_sparse
