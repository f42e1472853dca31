// Runs a format's kernels on the device that holds its tensors. One template serves every format: View is the format's
// struct of pointers, for which items(), entries_before(), shared_rows() and the spmm, sddmm and extremum launchers
// exist.
#pragma once

#include <optional>

#include "check_cuda.h"
#include "memory.h"
#include "pyg_sparse/cpu.h"
#include "pyg_sparse/order.h"
#include "pyg_sparse/slices.h"
#include "registry.h"

namespace pyg_sparse::torch_binding {

// Splits the items over torch's threads so that each has about the same number of entries.
template <typename View, typename Body>
void for_item_ranges(const View& a, int64_t k, const Body& body) {
  const int64_t count = items(a);
  if (count == 0) return;
  const auto cost_before = [&](int64_t item) { return entries_before(a, item) + item; };
  const auto first_item_at = [&](int64_t cost) {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (cost_before(middle) < cost) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  torch::stable::parallel_for(0, cost_before(count), rows_per_thread(k),
                              [&](int64_t begin, int64_t end) { body(first_item_at(begin), first_item_at(end)); });
}

#ifdef PYG_SPARSE_CUDA
template <typename View>
void run_spmm_on_cuda(const View& a, SpmmArgs args, const Tensor& out) {
  const torch::stable::accelerator::DeviceGuard guard(out.get_device_index());
  void* stream = current_stream(out.get_device_index());
  std::optional<Tensor> ordered;
  if (args.value && !args.stored && args.positions > 0) {
    ordered = torch::stable::new_empty(out, {args.heads, args.positions});
    const GatherArgs order{args.dtype, args.positions, args.heads, a.slot, args.value, ordered->mutable_data_ptr()};
    check_cuda(cuda::gather_values(order, stream), "spmm (order of values)");
    args.value = order.to;
  }
  check_cuda(cuda::spmm(a, args, stream), "spmm");
}
#endif

template <typename View>
void run_spmm(const View& a, SpmmArgs args, const Tensor& out) {
#ifdef PYG_SPARSE_CUDA
  if (out.is_cuda()) return run_spmm_on_cuda(a, args, out);
#endif
  args.stream = cpu::worth_streaming(args, out.size(0));
  const cpu::Kernels& kernels = *cpu::instruction_set().kernels;
  const auto spmm = cpu::kernels_of<View>().spmm;
  const SharedRows shared = shared_rows(a);
  const cpu::Slices slices = cpu::slices_of(args, entries_before(a, items(a)));
  if (slices.width > 0) {
    const Tensor copy = new_result(out, {slices.count * args.num_cols * slices.width});
    void* to = copy.mutable_data_ptr();
    torch::stable::parallel_for(0, args.num_cols, rows_per_thread(args.k),
                                [&](int64_t first, int64_t last) { cpu::copy_slices(args, slices, to, first, last); });
    for_item_ranges(a, args.k, [&](int64_t first, int64_t last) {
      for (int64_t s = 0; s < slices.count; ++s) spmm(a, cpu::slice_of(args, slices, to, s), first, last);
    });
  } else {
    args.prefetch = cpu::worth_prefetching(args.num_cols, args.k * size_of(args.dtype));
    for_item_ranges(a, args.k, [&](int64_t first, int64_t last) { spmm(a, args, first, last); });
  }
  torch::stable::parallel_for(0, shared.count, rows_per_thread(args.k),
                              [&](int64_t first, int64_t last) { kernels.combine(shared, args, first, last); });
}

#ifdef PYG_SPARSE_CUDA
template <typename View>
void run_sddmm_on_cuda(View a, int64_t positions, SddmmArgs args, const Tensor& out) {
  const torch::stable::accelerator::DeviceGuard guard(out.get_device_index());
  void* stream = current_stream(out.get_device_index());
  if (!worth_scattering(args, row_runs(a), positions)) {
    return check_cuda(cuda::sddmm(a, positions, args, stream), "sddmm");
  }
  // Results in stored order first: one by one, they would be written all over their rows' part of out.
  Tensor stored = torch::stable::new_empty(out, {positions});
  const ScatterArgs order{args.dtype, row_runs(a), a.slot, stored.const_data_ptr(), args.out};
  a.slot.edge = nullptr;
  args.out = stored.mutable_data_ptr();
  check_cuda(cuda::sddmm(a, positions, args, stream), "sddmm");
  check_cuda(cuda::scatter_values(order, stream), "sddmm (order of results)");
}
#endif

template <typename View>
void run_sddmm(const View& a, [[maybe_unused]] int64_t nnz, const SddmmArgs& args, const Tensor& out) {
#ifdef PYG_SPARSE_CUDA
  if (out.is_cuda()) return run_sddmm_on_cuda(a, nnz, args, out);
#endif
  const auto sddmm = cpu::kernels_of<View>().sddmm;
  for_item_ranges(a, args.k, [&](int64_t first, int64_t last) { sddmm(a, args, first, last); });
  static_cast<void>(out);
}

template <typename View>
void run_extremum(const View& a, [[maybe_unused]] int64_t nnz, const ExtremumArgs& args, const Tensor& out) {
  const SharedRows shared = shared_rows(a);
#ifdef PYG_SPARSE_CUDA
  if (out.is_cuda()) {
    const torch::stable::accelerator::DeviceGuard guard(out.get_device_index());
    void* stream = current_stream(out.get_device_index());
    check_cuda(cuda::extremum(a, nnz, args, stream), "spmm_extremum");
    check_cuda(cuda::combine_extremum(shared, args, stream), "spmm_extremum (combine)");
    return;
  }
#endif
  const cpu::Kernels& kernels = *cpu::instruction_set().kernels;
  const auto extremum = cpu::kernels_of<View>().extremum;
  for_item_ranges(a, args.k, [&](int64_t first, int64_t last) { extremum(a, args, first, last); });
  torch::stable::parallel_for(0, shared.count, rows_per_thread(args.k), [&](int64_t first, int64_t last) {
    kernels.combine_extremum(shared, args, first, last);
  });
  static_cast<void>(out);
}

// Binding is a format's glue: its name, view(layout) and the positions of col and slot in the layout.
template <typename Binding>
bool register_binding() {
  return register_format({Binding::kName,
                          [](const std::vector<Tensor>& layout) { return layout[Binding::kCol].numel(); },
                          [](const std::vector<Tensor>& layout) { return layout[Binding::kSlot].numel() > 0; },
                          [](const std::vector<Tensor>& layout, const SpmmArgs& args, const Tensor& out) {
                            run_spmm(Binding::view(layout), args, out);
                          },
                          [](const std::vector<Tensor>& layout, const SddmmArgs& args, const Tensor& out) {
                            run_sddmm(Binding::view(layout), layout[Binding::kCol].numel(), args, out);
                          },
                          [](const std::vector<Tensor>& layout, const ExtremumArgs& args, const Tensor& out) {
                            run_extremum(Binding::view(layout), layout[Binding::kCol].numel(), args, out);
                          }});
}

}  // namespace pyg_sparse::torch_binding
