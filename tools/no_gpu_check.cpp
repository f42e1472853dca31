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
