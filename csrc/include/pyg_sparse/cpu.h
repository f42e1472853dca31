// The CPU's kernels, compiled once for each instruction set. Every function takes a range of items or rows.
#pragma once

#include "pyg_sparse/combine.h"
#include "pyg_sparse/extremum.h"
#include "pyg_sparse/scale.h"

namespace pyg_sparse::cpu {

template <typename Format>
struct FormatKernels {
  void (*spmm)(const Format& a, const SpmmArgs& args, int64_t first_item, int64_t last_item);
  void (*sddmm)(const Format& a, const SddmmArgs& args, int64_t first_item, int64_t last_item);
  void (*extremum)(const Format& a, const ExtremumArgs& args, int64_t first_item, int64_t last_item);
};

struct Kernels : FormatKernels<Csr>, FormatKernels<Coo>, FormatKernels<Hyb> {
  void (*combine)(const SharedRows& shared, const SpmmArgs& args, int64_t first, int64_t last);
  void (*combine_extremum)(const SharedRows& shared, const ExtremumArgs& args, int64_t first, int64_t last);
  void (*scale_rows)(const ScaleArgs& args, int64_t first, int64_t last);
};

// A name as PYG_SPARSE_CPU takes it, and what was compiled for it.
struct InstructionSet {
  const char* name;
  const Kernels* kernels;
};

// The best that the processor has, or the one that the environment variable PYG_SPARSE_CPU names, which is read once.
// Throws std::runtime_error if there is no such one.
const InstructionSet& instruction_set();

template <typename Format>
const FormatKernels<Format>& kernels_of() {
  return *instruction_set().kernels;
}

}  // namespace pyg_sparse::cpu
