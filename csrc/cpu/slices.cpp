#include "pyg_sparse/slices.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

namespace pyg_sparse::cpu {
namespace {

// As Linux says: "32768K". sysconf adds up the caches of all the processor's parts, each of which serves some cores.
// By C's functions: C++'s streams need locales, which a library with a libstdc++ of its own may not have set up.
int64_t cache_bytes(int level, int64_t otherwise) {
  const std::string path = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(level) + "/size";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"), std::fclose);
  long long size = 0;
  char unit = ' ';
  if (!file || std::fscanf(file.get(), "%lld%c", &size, &unit) < 1 || size <= 0) return otherwise;
  return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

}  // namespace

const Caches& caches() {
  static const Caches known{cache_bytes(2, int64_t{1} << 20), cache_bytes(3, int64_t{16} << 20)};
  return known;
}

Slices slices_of(const SpmmArgs& args, int64_t entries) {
  constexpr int64_t kLine = 64, kEntriesPerRow = 32;  // fewer would not pay for the copy
  const int64_t room = caches().own / 4 * 3, size = size_of(args.dtype);
  const Slices all{0, 1};
  if (args.heads > 1 || args.num_cols * args.k * size <= room || entries < kEntriesPerRow * args.num_cols) return all;
  const int64_t lines = room / (args.num_cols * kLine), width = lines * kLine / size;
  if (lines == 0 || width >= args.k) return all;
  const int64_t count = (args.k + width - 1) / width;
  const int64_t even = (args.k + count - 1) / count, step = kLine / size;
  return {(even + step - 1) / step * step, count};
}

bool worth_prefetching(int64_t rows, int64_t row_bytes) {
  constexpr int64_t kRow = 64;  // narrower rows are added up while the processor looks for the next
  const int64_t bytes = rows * row_bytes;
  return bytes > caches().shared || (bytes > caches().own && row_bytes >= kRow);
}

bool worth_streaming(const SpmmArgs& args, int64_t rows) {
  constexpr int64_t kLine = 64;
  const int64_t head_bytes = args.k / args.heads * size_of(args.dtype);  // blocks of features begin where heads do
  const bool lines = head_bytes % kLine == 0 && reinterpret_cast<uintptr_t>(args.out) % kLine == 0;
  return lines && (args.num_cols + rows) * args.heads * head_bytes > caches().shared / 4;
}

void copy_slices(const SpmmArgs& args, const Slices& slices, void* to, int64_t first, int64_t last) {
  const int64_t size = size_of(args.dtype), bytes = slices.width * size;
  const char* x = static_cast<const char*>(args.x);
  for (int64_t s = 0; s < slices.count; ++s) {
    char* slice = static_cast<char*>(to) + s * args.num_cols * bytes;
    const int64_t count = std::min(slices.width, args.k - s * slices.width) * size;
    for (int64_t row = first; row < last; ++row) {
      std::memcpy(slice + row * bytes, x + row * args.ldx * size + s * bytes, static_cast<size_t>(count));
    }
  }
}

SpmmArgs slice_of(const SpmmArgs& args, const Slices& slices, const void* copy, int64_t slice) {
  SpmmArgs result = args;
  result.first = slice * slices.width;
  result.last = std::min(result.first + slices.width, args.k);
  result.x = static_cast<const char*>(copy) + slice * args.num_cols * slices.width * size_of(args.dtype);
  result.ldx = slices.width;
  return result;
}

}  // namespace pyg_sparse::cpu
