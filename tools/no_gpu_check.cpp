// Calls every CUDA launcher on a machine without a GPU: each must return an error. Linked and run by check_cuda.py.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "pyg_sparse/combine.h"
#include "pyg_sparse/coo.h"
#include "pyg_sparse/csr.h"
#include "pyg_sparse/extremum.h"
#include "pyg_sparse/fingerprint.h"
#include "pyg_sparse/hyb.h"
#include "pyg_sparse/order.h"
#include "pyg_sparse/row_features.h"
#include "pyg_sparse/scale.h"
#include "pyg_sparse/vote.h"

namespace {

using namespace pyg_sparse;

int failures = 0;

void expect_error(const char* launcher, int error) {
  if (error != 0 && cuda::error_string(error) != nullptr) return;
  std::printf("%s returned %d, not an error\n", launcher, error);
  ++failures;
}

// One edge, 0 -> 0, in every format: enough work for each launcher to launch something.
const int64_t kBounds[] = {0, 1};
const int32_t kZero[] = {0};
const int32_t kNone[] = {-1};
const HybBucket kBucket[] = {{0, 0, 1}};
const SlotMap kSlot = {kZero, false};
const SharedRows kShared = {1, kZero, kBounds};
const Csr kCsr = {1, kBounds, kZero, kZero,   kSlot, 0,       kBounds, 0,      kBounds,
                  0, kBounds, 1,     kBounds, 0,     kBounds, 0,       kBounds};
const Coo kCoo = {kZero, kZero, kSlot, 1, kBounds, kNone, kNone, {}};
const Hyb kHyb = {1, kBucket, 1, kZero, kNone, kZero, kSlot, {}};

// Vector loads need 16-byte alignment. Nothing here is ever read or written.
alignas(16) const double kX[8] = {};
alignas(16) double out[8] = {}, partial[8] = {};
int64_t arg[8] = {}, partial_arg[8] = {};

SpmmArgs spmm_args(DType dtype, int64_t rows, int64_t width, int64_t positions = 1) {
  return {.dtype = dtype,
          .k = width,
          .heads = 1,
          .num_cols = rows,
          .x = kX,
          .ldx = width,
          .self = kX,
          .ldself = width,
          .out = out,
          .positions = positions,
          .partial = partial};
}

ExtremumArgs extremum_args(DType dtype, int64_t width) {
  return {.dtype = dtype,
          .largest = true,
          .k = width,
          .x = kX,
          .ldx = width,
          .out = out,
          .arg = arg,
          .partial = partial,
          .partial_arg = partial_arg};
}

template <typename Format>
void check_format(const char* name, const Format& format, DType dtype) {
  const SddmmArgs sddmm = {.dtype = dtype, .k = 8, .heads = 1, .q = kX, .ldq = 8, .key = kX, .ldk = 8, .out = out};
  expect_error(name, cuda::spmm(format, spmm_args(dtype, 1, 8), nullptr));
  expect_error(name, cuda::sddmm(format, 1, sddmm, nullptr));
  expect_error(name, cuda::extremum(format, 1, extremum_args(dtype, 8), nullptr));
}

void expect_shape(const char* launcher, int64_t rows, int64_t mean, int64_t width, int error) {
  constexpr int kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration
  if (error != 0 && error != kInvalidConfiguration) return;
  std::printf("%s of %d rows of %d entries and width %d: error %d\n", launcher, static_cast<int>(rows),
              static_cast<int>(mean), static_cast<int>(width), error);
  ++failures;
}

// Every width finds a shape that could run, for long and short rows: what fails is the launch. Without a device, one
// multiprocessor is assumed; 96 short rows are then enough for groups of 16 lanes, but not of 8.
void check_shapes(DType dtype) {
  for (const int64_t rows : {1, 96, 1 << 20}) {
    for (const int64_t mean : {1, 14, 500}) {
      for (int64_t width = 1; width < 700; ++width) {
        Csr csr = kCsr;
        csr.rows = rows;
        for (csr.tiles = 0; csr.tiles < 2; ++csr.tiles) {
          const int error = cuda::spmm(csr, spmm_args(dtype, rows, width, rows * mean), nullptr);
          expect_shape("spmm", rows, mean, width, error);
        }
        expect_shape("extremum", rows, mean, width,
                     cuda::extremum(csr, rows * mean, extremum_args(dtype, width), nullptr));
      }
    }
  }
}

}  // namespace

int main() {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    check_shapes(dtype);
    check_format("Csr", kCsr, dtype);
    check_format("Coo", kCoo, dtype);
    check_format("Hyb", kHyb, dtype);
    expect_error("combine", cuda::combine(kShared, spmm_args(dtype, 1, 8), nullptr));
    expect_error("combine_extremum", cuda::combine_extremum(kShared, extremum_args(dtype, 8), nullptr));
    expect_error("gather_values", cuda::gather_values({dtype, 1, 1, kSlot, kX, out}, nullptr));
    expect_error("scatter_values", cuda::scatter_values({dtype, {1, kBounds}, kSlot, kX, out}, nullptr));
    expect_error("scale_rows", cuda::scale_rows({dtype, 1, 8, kX, 8, kX, out}, nullptr));
  }
  int32_t label[1] = {};
  expect_error("vote", cuda::vote({1, kBounds, kZero, kZero, kZero, label, 0}, nullptr));
  expect_error("row_features", cuda::row_features({1, kBounds, kZero, kZero, kBounds, arg, arg, arg, arg}, nullptr));
  uint64_t sums[2] = {};
  expect_error("fingerprint", cuda::fingerprint({1, kBounds, kBounds, 1, true}, sums, nullptr));
  return failures == 0 ? 0 : 1;
}
