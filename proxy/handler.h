#pragma once
#include "proxy/asio.h"
#include "proxy/body.h"
#include "proxy/request.h"
#include "proxy/response_sink.h"

namespace secondsight::proxy {

/// What answers requests. One per worker, called for many sessions at a time, on that worker's
/// thread.
class Handler {
 public:
  virtual ~Handler() = default;
  /// Answers `request` through `sink`: begin, write*, finish. All three live until it returns, and
  /// until then `body` may be pulled by one other coroutine of this worker, which must have ended
  /// by then. Returning without begin() makes the session answer: after an error from `body` with
  /// what that error deserves (400, 408, 413), else with 500. Returning between begin() and a
  /// successful finish() cuts the connection.
  virtual net::awaitable<void> handle(const Request& request, BodySource& body,
                                      ResponseSink& sink) = 0;
};

}  // namespace secondsight::proxy
