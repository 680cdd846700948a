#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "config/result.h"
#include "config/system_calls.h"

namespace secondsight {

/// What ReadMode::Uncached does for a file that is open as `descriptor`: all bytes, fewer at the
/// end of the file. Reads with O_DIRECT through a description of its own, so that neither the flag
/// nor read-ahead touches the other users of the descriptor; plainly where the file system knows no
/// O_DIRECT. Thread-safe. Errors: I/O.
Result<std::size_t> read_uncached(SystemCalls& calls, int descriptor, std::uint64_t offset,
                                  std::span<std::byte> out);

}  // namespace secondsight
