// Features in slices whose rows of x stay in a core's own cache. On the CPU a slice of x is copied there first: in
// place, its rows would lie so far apart that they shared a few sets of the cache.
#pragma once

#include "pyg_sparse/operands.h"

namespace pyg_sparse::cpu {

// A core's own cache and the one it shares, in bytes.
struct Caches {
  int64_t own, shared;
};

const Caches& caches();

struct Slices {
  int64_t width;  // features of a slice; 0: all at once, from x itself
  int64_t count;
};

// How to go through the features of x for so many entries.
Slices slices_of(const SpmmArgs& args, int64_t entries);

// Whether the rows of a matrix come from so far that they should be asked for early.
bool worth_prefetching(int64_t rows, int64_t row_bytes);

// Whether x and the results are more than stays in the shared cache, so that results had better not be read into it
// before they are written; and whether each head of a row lies in whole lines.
bool worth_streaming(const SpmmArgs& args, int64_t rows);

// Copies rows first .. last of every slice of x to [slices, rows, width].
void copy_slices(const SpmmArgs& args, const Slices& slices, void* to, int64_t first, int64_t last);

// The arguments of one slice, of the copy.
SpmmArgs slice_of(const SpmmArgs& args, const Slices& slices, const void* copy, int64_t slice);

}  // namespace pyg_sparse::cpu
