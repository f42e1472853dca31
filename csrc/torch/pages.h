// Large results on Linux: the kernel hands out and clears memory 4 KB at a time unless it is told better, which takes
// longer than to compute them.
#pragma once

#include <torch/csrc/stable/tensor.h>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace pyg_sparse::torch_binding {

// A new tensor whose elements are about to be written. What is asked for is advice, which may be refused. It stays with
// the pages: if they are of the heap, what comes to lie there later is in large pages as well.
inline torch::stable::Tensor in_large_pages(torch::stable::Tensor fresh) {
#if defined(__linux__)
  constexpr size_t kWorthwhile = size_t{4} << 20;
  const size_t bytes = static_cast<size_t>(fresh.numel()) * fresh.element_size();
  if (fresh.is_cuda() || bytes < kWorthwhile) return fresh;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(fresh.mutable_data_ptr());
  const uintptr_t first = (begin + page - 1) / page * page, last = (begin + bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
  return fresh;
}

}  // namespace pyg_sparse::torch_binding
