// Which instruction sets there are kernels for besides the architecture's own. Not for clang, which takes no target
// from a pragma, and not with AddressSanitizer, whose build does not inline what the sets share.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define PYG_SPARSE_X86_64_SETS
#endif
