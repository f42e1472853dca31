#include "pyg_sparse/hyb.h"

#include "run_format.h"

namespace pyg_sparse::torch_binding {
namespace {

struct HybBinding {
  static constexpr const char* kName = "hyb";
  enum { kBucket, kRow, kPartial, kCol, kSlot, kSharedRow, kSharedPtr, kCount };

  static Hyb view(const std::vector<Tensor>& layout) {
    const LayoutReader in(kName, layout, kCount);
    static_assert(sizeof(HybBucket) == 3 * sizeof(int64_t), "bucket is an int64 tensor of three columns");
    const auto* bucket = reinterpret_cast<const HybBucket*>(in.int64(kBucket));
    const SharedRows shared{in.size(kSharedRow), in.int32(kSharedRow), in.int64(kSharedPtr)};
    return {in.size(kBucket),   bucket,         in.size(kRow),   in.int32(kRow),
            in.int32(kPartial), in.int32(kCol), in.slots(kSlot), shared};
  }
};

const bool registered = register_binding<HybBinding>();

}  // namespace
}  // namespace pyg_sparse::torch_binding
