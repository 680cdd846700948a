#pragma once
#include <cstddef>
#include <span>

#include "config/result.h"
#include "proxy/asio.h"

namespace secondsight::proxy {

/// A request body on its way: pulled piece by piece, so that it never needs more than one buffer.
/// One worker's thread.
class BodySource {
 public:
  virtual ~BodySource() = default;
  /// The next piece, valid until the next call; empty at the end. Sends "100 Continue" first when
  /// the client waits for it. Errors: connection lost, timed_out, bad_message (bad chunk framing),
  /// message_size (over the limit).
  virtual net::awaitable<Result<std::span<const std::byte>>> next() = 0;
};

}  // namespace secondsight::proxy
