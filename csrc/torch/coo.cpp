#include "pyg_sparse/coo.h"

#include "run_format.h"

namespace pyg_sparse::torch_binding {
namespace {

struct CooBinding {
  static constexpr const char* kName = "coo";
  enum { kRow, kCol, kSlot, kChunkPtr, kHead, kTail, kSharedRow, kSharedPtr, kCount };

  static Coo view(const std::vector<Tensor>& layout) {
    const LayoutReader in(kName, layout, kCount);
    const SharedRows shared{in.size(kSharedRow), in.int32(kSharedRow), in.int64(kSharedPtr)};
    return {in.int32(kRow),      in.int32(kCol),  in.slots(kSlot), in.size(kChunkPtr) - 1,
            in.int64(kChunkPtr), in.int32(kHead), in.int32(kTail), shared};
  }
};

const bool registered = register_binding<CooBinding>();

}  // namespace
}  // namespace pyg_sparse::torch_binding
