#include "elements.cuh"
#include "extremum.cuh"

namespace pyg_sparse::cuda {
namespace {

// One thread per output element. The partials of a row are in stored order, so that among equal ones the first has the
// lowest position.
template <typename T>
__global__ void combine_extremum_kernel(SharedRows shared, ExtremumArgs args) {
  using A = Accumulate<T>;
  for_each_element(shared.count, args.k, [&](int64_t i, int64_t k) {
    A best = 0;
    int64_t at = -1;
#pragma unroll 4
    for (int64_t p = shared.ptr[i]; p < shared.ptr[i + 1]; ++p) {
      const A message = static_cast<const A*>(args.partial)[p * args.k + k];
      const int64_t position = args.partial_arg[p * args.k + k];
      if (at >= 0 && !beats(message, best)) continue;
      best = message;
      at = position;
    }
    const int64_t to = shared.row[i] * args.k + k;
    static_cast<T*>(args.out)[to] = narrow<T>(at < 0 ? A(0) : args.largest ? best : -best);
    args.arg[to] = at;
  });
}

}  // namespace

int extremum(const Csr& a, int64_t nnz, const ExtremumArgs& args, void* stream) {
  return launch_extremum(a, nnz, args, stream);
}
int extremum(const Coo& a, int64_t nnz, const ExtremumArgs& args, void* stream) {
  return launch_extremum(a, nnz, args, stream);
}
int extremum(const Hyb& a, int64_t nnz, const ExtremumArgs& args, void* stream) {
  return launch_extremum(a, nnz, args, stream);
}

int combine_extremum(const SharedRows& shared, const ExtremumArgs& args, void* stream) {
  return visit_dtype(args.dtype, [&](auto tag) {
    const auto kernel = combine_extremum_kernel<typename decltype(tag)::type>;
    return launch_elements(kernel, shared.count * args.k, stream, shared, args);
  });
}

}  // namespace pyg_sparse::cuda
