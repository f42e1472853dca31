#include "pyg_sparse/csr.h"

#include "run_format.h"

namespace pyg_sparse::torch_binding {
namespace {

struct CsrBinding {
  static constexpr const char* kName = "csr";
  enum { kRowptr, kRow, kCol, kSlot, kPartPtr, kSharedPtr, kTeamPtr, kTilePtr, kTilePartPtr, kTileSharedPtr, kCount };

  static Csr view(const std::vector<Tensor>& layout) {
    const LayoutReader in(kName, layout, kCount);
    return {in.size(kRow),           in.int64(kRowptr),         in.int32(kRow),         in.int32(kCol),
            in.slots(kSlot),         in.size(kPartPtr) - 1,     in.int64(kPartPtr),     in.size(kSharedPtr) - 1,
            in.int64(kSharedPtr),    in.size(kTeamPtr) - 1,     in.int64(kTeamPtr),     in.size(kTilePtr) - 1,
            in.int64(kTilePtr),      in.size(kTilePartPtr) - 1, in.int64(kTilePartPtr), in.size(kTileSharedPtr) - 1,
            in.int64(kTileSharedPtr)};
  }
};

const bool registered = register_binding<CsrBinding>();

}  // namespace
}  // namespace pyg_sparse::torch_binding
