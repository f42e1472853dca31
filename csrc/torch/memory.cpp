#include "memory.h"

#include <torch/csrc/stable/ops.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)  // which watches the heap only
#define PYG_SPARSE_POOL
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace pyg_sparse::torch_binding {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

namespace {

#ifdef PYG_SPARSE_POOL

constexpr size_t kLeast = size_t{256} << 10;  // less is the heap's, whose pages stay
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kInLargePages = 2 * kLargePage;
constexpr size_t kKept = 32;                    // blocks
constexpr size_t kUnmarked = size_t{64} << 20;  // bytes

struct Block {
  void* data;
  size_t bytes;
  bool marked = false;  // as free
};

size_t round_up(size_t value, size_t step) { return (value + step - 1) / step * step; }

// Sizes that differ little share blocks. What is not written takes no memory.
size_t size_class(size_t bytes) {
  return round_up(bytes, std::max(std::bit_floor(bytes) / 8, static_cast<size_t>(sysconf(_SC_PAGESIZE))));
}

void* map(size_t bytes) {
  const size_t slack = bytes >= kInLargePages ? kLargePage : 0;
  void* const mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED || slack == 0) return mapped;
  const auto begin = reinterpret_cast<uintptr_t>(mapped), data = round_up(begin, kLargePage);
  if (data > begin) munmap(mapped, data - begin);
  if (begin + slack > data) munmap(reinterpret_cast<void*>(data + bytes), begin + slack - data);
  madvise(reinterpret_cast<void*>(data), bytes, MADV_HUGEPAGE);  // advice, which may be refused
  return reinterpret_cast<void*>(data);
}

// The blocks of results that are gone, the latest last. All but the latest kUnmarked bytes are marked as free: Linux
// takes their pages when it needs them, and until then they stay. To mark a block takes about 0.1 ms.
class Pool {
 public:
  // Never destroyed: results may outlive everything else.
  static Pool& instance() {
    static Pool* const pool = [] {
      auto* made = new Pool;
      const auto lock = [] { instance().mutex_.lock(); };
      const auto unlock = [] { instance().mutex_.unlock(); };
      pthread_atfork(lock, unlock, unlock);
      return made;
    }();
    return *pool;
  }

  // Null if there is no memory.
  void* take(size_t bytes) {
    {
      const std::lock_guard guard(mutex_);
      const auto fits = [&](const Block& block) { return block.bytes == bytes; };
      const auto found = std::find_if(kept_.rbegin(), kept_.rend(), fits);
      if (found != kept_.rend()) {
        void* const data = found->data;
        kept_.erase(std::next(found).base());
        return data;
      }
    }
    void* data = map(bytes);
    if (data == MAP_FAILED) {
      clear();
      data = map(bytes);
    }
    return data == MAP_FAILED ? nullptr : data;
  }

  void give_back(Block block) {
    const std::lock_guard guard(mutex_);
    kept_.push_back(block);
    if (kept_.size() > kKept) {
      munmap(kept_.front().data, kept_.front().bytes);
      kept_.pop_front();
    }
#if defined(MADV_FREE)
    size_t later = 0;
    for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
      later += kept->bytes;
      if (later > kUnmarked && !kept->marked) kept->marked = madvise(kept->data, kept->bytes, MADV_FREE) == 0;
    }
#endif
  }

 private:
  void clear() {
    const std::lock_guard guard(mutex_);
    for (const Block& block : kept_) munmap(block.data, block.bytes);
    kept_.clear();
  }

  std::mutex mutex_;
  std::deque<Block> kept_;
};

std::optional<Tensor> pooled(const Tensor& like, std::initializer_list<int64_t> sizes, ScalarType dtype) {
  size_t bytes = aoti_torch_dtype_element_size(torch::stable::detail::to<int32_t>(torch::stable::detail::from(dtype)));
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  if (bytes < kLeast) return std::nullopt;
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t i = sizes.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * sizes.begin()[i];
  const size_t taken = size_class(bytes);
  void* const data = Pool::instance().take(taken);
  if (data == nullptr) return std::nullopt;
  static const bool poison = std::getenv("PYG_SPARSE_POISON") != nullptr;  // NaN, so that what is not written shows
  if (poison) std::memset(data, 0xff, bytes);
  return torch::stable::from_blob(data, sizes, strides, like.device(), dtype,
                                  [taken](void* unused) { Pool::instance().give_back({unused, taken}); });
}

#endif

}  // namespace

Tensor new_result(const Tensor& like, std::initializer_list<int64_t> sizes, std::optional<ScalarType> dtype) {
  const ScalarType type = dtype.value_or(like.scalar_type());
#ifdef PYG_SPARSE_POOL
  // Without memory torch says how much was asked for.
  if (!like.is_cuda()) {
    if (std::optional<Tensor> result = pooled(like, sizes, type)) return *std::move(result);
  }
#endif
  return torch::stable::new_empty(like, sizes, type);
}

}  // namespace pyg_sparse::torch_binding
