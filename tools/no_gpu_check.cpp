// Calls every CUDA launcher on a machine without a GPU: each must return an error. Linked and run by check_cuda.py.
#include <cstdint>
#include <cstdio>
#include <initializer_list>

#include "pyg_sparse/combine.h"
#include "pyg_sparse/coo.h"
#include "pyg_sparse/csr.h"
#include "pyg_sparse/hyb.h"
#include "pyg_sparse/order.h"
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
const Csr kCsr = {1, kBounds, kZero, kZero, kSlot, 0, kBounds, 0, kBounds};
const Coo kCoo = {kZero, kZero, kSlot, 1, kBounds, kNone, kNone, {}};
const Hyb kHyb = {1, kBucket, 1, kZero, kNone, kZero, kSlot, {}};

template <typename Format>
void check_format(const char* spmm, const char* sddmm, const Format& format, const SpmmArgs& spmm_args,
                  const SddmmArgs& sddmm_args) {
  expect_error(spmm, cuda::spmm(format, 1, spmm_args, nullptr));
  expect_error(sddmm, cuda::sddmm(format, 1, sddmm_args, nullptr));
}

// Every width finds a shape that could run, for few and for many, for short and for long rows: what fails is the
// launch.
void check_shapes(DType dtype) {
  constexpr int kInvalidConfiguration = 9;  // cudaErrorInvalidConfiguration
  const double x[1] = {};
  double out[1] = {};
  for (const int64_t rows : {1, 1 << 20}) {
    for (const int64_t mean : {1, 14, 500}) {
      for (int64_t width = 1; width < 700; ++width) {
        const Csr csr = {rows, kBounds, kZero, kZero, kSlot, 0, kBounds, 0, kBounds};
        const SpmmArgs args = {.dtype = dtype,
                               .k = width,
                               .heads = 1,
                               .num_cols = rows,
                               .x = x,
                               .ldx = width,
                               .self = x,
                               .ldself = width,
                               .out = out};
        const int error = cuda::spmm(csr, rows * mean, args, nullptr);
        if (error != 0 && error != kInvalidConfiguration) continue;
        std::printf("spmm of %d rows of %d entries and width %d: error %d\n", static_cast<int>(rows),
                    static_cast<int>(mean), static_cast<int>(width), error);
        ++failures;
      }
    }
  }
}

}  // namespace

int main() {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    double x[8] = {}, out[8] = {}, partial[8] = {};
    const SpmmArgs spmm = {.dtype = dtype,
                           .k = 8,
                           .heads = 1,
                           .num_cols = 1,
                           .x = x,
                           .ldx = 8,
                           .self = x,
                           .ldself = 8,
                           .out = out,
                           .partial = partial};
    const SddmmArgs sddmm = {.dtype = dtype, .k = 8, .heads = 1, .q = x, .ldq = 8, .key = x, .ldk = 8, .out = out};
    check_shapes(dtype);
    check_format("spmm(Csr)", "sddmm(Csr)", kCsr, spmm, sddmm);
    check_format("spmm(Coo)", "sddmm(Coo)", kCoo, spmm, sddmm);
    check_format("spmm(Hyb)", "sddmm(Hyb)", kHyb, spmm, sddmm);
    expect_error("combine", cuda::combine(kShared, spmm, nullptr));
    expect_error("order_values", cuda::order_values({dtype, 1, 1, kSlot, x, out}, nullptr));
    expect_error("scale_rows", cuda::scale_rows({dtype, 1, 8, x, 8, x, out}, nullptr));
  }
  int32_t label[1] = {};
  expect_error("vote", cuda::vote({1, kBounds, kZero, kZero, kZero, label, 0}, nullptr));
  return failures == 0 ? 0 : 1;
}
