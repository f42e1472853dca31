#include "pyg_sparse/rcm.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace pyg_sparse::cpu {

void rcm(const RcmArgs& args) {
  // Stored rows are sorted by length: the larger a stored row's number, the shorter it is.
  std::vector<int64_t> stored(static_cast<size_t>(args.rows));
  for (int64_t r = 0; r < args.rows; ++r) stored[args.row[r]] = r;
  std::vector<bool> seen(static_cast<size_t>(args.rows));
  int64_t next = args.rows - 1, found = 0;
  const auto visit = [&](int64_t r) {
    seen[r] = true;
    args.order[found++] = r;
  };
  for (int64_t taken = 0; taken < args.rows; ++taken) {
    if (taken == found) {
      while (seen[next]) --next;
      visit(next);
    }
    const int64_t r = args.order[taken], first = found;
    for (int64_t e = args.rowptr[r]; e < args.rowptr[r + 1]; ++e) {
      const int64_t neighbour = stored[args.col[e]];
      if (!seen[neighbour]) visit(neighbour);
    }
    std::sort(args.order + first, args.order + found, std::greater<>());
  }
  std::reverse(args.order, args.order + args.rows);
}

}  // namespace pyg_sparse::cpu
