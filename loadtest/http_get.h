#pragma once
#include <chrono>
#include <string>

#include "config/result.h"
#include "loadtest/asio.h"

namespace secondsight::loadtest {

/// Fetches one small document; blocks the caller. Errors: connection, timed_out, bad_message (not
/// HTTP or not a 200 answer), message_size (over 4 MiB).
Result<std::string> http_get(const tcp::endpoint& server, const std::string& target,
                             std::chrono::milliseconds timeout);

}  // namespace secondsight::loadtest
