// Runs one kernel of the CPU on a small fixed matrix, some number of times: count_instructions.py counts.
//
//   count_instructions OPERATOR FORMAT DTYPE WIDTH REPEATS
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "pyg_sparse/cpu.h"

using namespace pyg_sparse;

namespace {

// Rows of 0 to 15 entries of pseudorandom columns, in CSR, in COO with chunks of 64, in hyb with one bucket of 16.
struct Matrix {
  static constexpr int64_t kRows = 500, kChunk = 64, kEll = 16;
  std::vector<int64_t> rowptr{0}, none{0}, chunks{0};
  std::vector<int32_t> ids, row, col, slot, heads, tails, ell, whole;
  HybBucket bucket{0, 0, kEll};

  Matrix() {
    uint32_t state = 1;
    const auto draw = [&](uint32_t below) { return (state = state * 1664525u + 1013904223u) / 65536u % below; };
    for (int32_t r = 0; r < kRows; ++r) {
      const uint32_t length = draw(kEll);
      for (uint32_t i = 0; i < kEll; ++i) {
        const auto column = static_cast<int32_t>(draw(kRows));
        ell.push_back(i < length ? column : -1);
        if (i < length) row.push_back(r), col.push_back(column);
      }
      ids.push_back(r), whole.push_back(-1), rowptr.push_back(static_cast<int64_t>(col.size()));
    }
    for (size_t i = 0; i < ell.size(); ++i) slot.push_back(static_cast<int32_t>(i));
    const auto entries = static_cast<int64_t>(col.size());
    for (int64_t at = 0; at < entries; at += kChunk) {
      chunks.push_back(at + kChunk < entries ? at + kChunk : entries);
      heads.push_back(static_cast<int32_t>(2 * heads.size())),
          tails.push_back(static_cast<int32_t>(2 * tails.size() + 1));
    }
  }

  SlotMap slots() const { return {slot.data(), false}; }
  Csr csr() const {
    Csr a{};
    a.rows = kRows, a.rowptr = rowptr.data(), a.row = ids.data(), a.col = col.data(), a.slot = slots();
    a.part_ptr = a.shared_ptr = none.data();
    return a;
  }
  Coo coo() const {
    return {row.data(),    col.data(),   slots(),      static_cast<int64_t>(heads.size()),
            chunks.data(), heads.data(), tails.data(), {}};
  }
  Hyb hyb() const { return {1, &bucket, kRows, ids.data(), whole.data(), ell.data(), slots(), {}}; }
};

template <typename Format>
void run(const Format& a, const std::string& operation, DType dtype, int64_t k, int repeats) {
  const auto bytes = static_cast<size_t>(Matrix::kRows * 16 * k * size_of(dtype));
  std::vector<char> x(bytes), value(bytes), out(bytes), partial(bytes * 8);
  std::vector<int64_t> arg(bytes), partial_arg(bytes);
  const auto& kernels = cpu::kernels_of<Format>();
  for (int i = 0; i < repeats; ++i) {
    if (operation == "sddmm") {
      kernels.sddmm(
          a,
          {.dtype = dtype, .k = k, .heads = 1, .q = x.data(), .ldq = k, .key = x.data(), .ldk = k, .out = out.data()},
          0, items(a));
    } else if (operation == "max") {
      kernels.extremum(a,
                       {.dtype = dtype,
                        .largest = true,
                        .k = k,
                        .x = x.data(),
                        .ldx = k,
                        .out = out.data(),
                        .arg = arg.data(),
                        .partial = partial.data(),
                        .partial_arg = partial_arg.data()},
                       0, items(a));
    } else {
      SpmmArgs args{.dtype = dtype,
                    .k = k,
                    .heads = 1,
                    .num_cols = Matrix::kRows,
                    .x = x.data(),
                    .ldx = k,
                    .self = x.data(),
                    .ldself = k,
                    .out = out.data()};
      args.partial = partial.data();
      if (operation == "weighted") args.value = value.data();
      kernels.spmm(a, args, 0, items(a));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return std::fprintf(stderr, "usage: %s OPERATOR FORMAT DTYPE WIDTH REPEATS\n", argv[0]), 2;
  const std::string operation = argv[1], format = argv[2], name = argv[3];
  const auto one_of = [](const std::string& word, std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (!one_of(operation, {"sum", "weighted", "max", "sddmm"}) || !one_of(format, {"csr", "coo", "hyb"}) ||
      !one_of(name, {"float32", "bfloat16", "float16"})) {
    return std::fprintf(stderr, "unknown case: %s %s %s\n", argv[1], argv[2], argv[3]), 2;
  }
  const DType dtype = name == "float32" ? DType::kFloat32 : name == "bfloat16" ? DType::kBFloat16 : DType::kFloat16;
  const Matrix matrix;
  const auto call = [&](const auto& a) { run(a, operation, dtype, std::atoll(argv[4]), std::atoi(argv[5])); };
  format == "csr" ? call(matrix.csr()) : format == "coo" ? call(matrix.coo()) : call(matrix.hyb());
  return 0;
}
