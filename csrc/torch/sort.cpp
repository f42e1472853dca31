// sort_by_key: the CPU's stable counting sort. On CUDA, torch's radix sort does this work (pyg_sparse/formats/rows.py).
#include "pyg_sparse/sort.h"

#include <limits>
#include <tuple>

#include "memory.h"
#include "registry.h"

namespace pyg_sparse::torch_binding {
namespace {

template <typename Key, typename Position>
void sort_into(const Tensor& key, int64_t keys, const Tensor& ptr, const Tensor& order) {
  const auto* from = static_cast<const Key*>(key.const_data_ptr());
  auto* to = static_cast<Position*>(order.mutable_data_ptr());
  const int64_t n = key.numel();
  constexpr int64_t kGrain = 1 << 16;
  const int64_t threads = torch::stable::get_num_threads();
  // Each block keeps a counter per key, so blocks are few where keys are many.
  const int64_t blocks = std::clamp<int64_t>(n / std::max(kGrain, keys), 1, threads);
  const int64_t block_size = (n + blocks - 1) / blocks;
  std::vector<int64_t> count(static_cast<size_t>(blocks * keys));
  const auto for_blocks = [&](const auto& body) {
    torch::stable::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        body(std::min(n, b * block_size), std::min(n, (b + 1) * block_size), count.data() + b * keys);
      }
    });
  };
  for_blocks([&](int64_t begin, int64_t end, int64_t* own) { cpu::count_keys(from, begin, end, own); });
  cpu::offsets_from_counts(count.data(), blocks, keys, static_cast<int64_t*>(ptr.mutable_data_ptr()));
  for_blocks([&](int64_t begin, int64_t end, int64_t* own) { cpu::place(from, begin, end, own, to); });
}

// Keys must lie in [0, num_keys); the Python callers have checked the edges they come from.
std::tuple<Tensor, Tensor> sort_by_key(Tensor key, int64_t num_keys) {
  STD_TORCH_CHECK(key.dim() == 1, "key must have 1 dimension, not ", key.dim());
  STD_TORCH_CHECK(key.scalar_type() == ScalarType::Int || key.scalar_type() == ScalarType::Long,
                  "key must be int32 or int64");
  STD_TORCH_CHECK(num_keys >= 0, "num_keys must not be negative");
  const Tensor keys = torch::stable::contiguous(key);
  const bool wide = key.numel() > std::numeric_limits<int32_t>::max();
  Tensor ptr = torch::stable::new_empty(key, {num_keys + 1}, ScalarType::Long);
  Tensor order = new_result(key, {key.numel()}, wide ? ScalarType::Long : ScalarType::Int);
  if (key.scalar_type() == ScalarType::Int) {
    (wide ? sort_into<int32_t, int64_t> : sort_into<int32_t, int32_t>)(keys, num_keys, ptr, order);
  } else {
    (wide ? sort_into<int64_t, int64_t> : sort_into<int64_t, int32_t>)(keys, num_keys, ptr, order);
  }
  return {ptr, order};
}

}  // namespace
}  // namespace pyg_sparse::torch_binding

STABLE_TORCH_LIBRARY_IMPL(pyg_sparse, CPU, m) {
  m.impl("sort_by_key", TORCH_BOX(&pyg_sparse::torch_binding::sort_by_key));
}
