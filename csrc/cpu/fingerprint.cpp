#include "pyg_sparse/fingerprint.h"

#include <cstring>

namespace pyg_sparse::cpu {
namespace {

template <typename Index>
Index load(const void* from, int64_t at) {
  Index index;
  std::memcpy(&index, static_cast<const char*>(from) + at * static_cast<int64_t>(sizeof(Index)), sizeof(Index));
  return index;
}

template <typename Index>
Fingerprint sum_of(const FingerprintArgs& args, int64_t first, int64_t last) {
  Fingerprint sum{};
  for (int64_t i = first; i < last; ++i) {
    const int64_t at = i * args.stride;
    sum += fingerprint_of(load<Index>(args.first, at), load<Index>(args.second, at), i);
  }
  return sum;
}

}  // namespace

Fingerprint fingerprint(const FingerprintArgs& args, int64_t first, int64_t last) {
  return args.wide ? sum_of<int64_t>(args, first, last) : sum_of<int32_t>(args, first, last);
}

}  // namespace pyg_sparse::cpu
