#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "config/result.h"
#include "loadtest/asio.h"

namespace secondsight::loadtest {

/// What an origin has answered. Statistics: each grows on its own, from any thread.
struct OriginCounters {
  std::atomic<std::uint64_t> fetches{0};  // GETs answered 200 or 206: a body went out
  std::atomic<std::uint64_t> heads{0};
  std::atomic<std::uint64_t> not_modified{0};  // 304
  std::atomic<std::uint64_t> refused{0};       // 400, 404, 405, 416
  std::atomic<std::uint64_t> body_bytes{0};
};

/// An HTTP/1.1 server that knows every object: GET /o/KEY/SIZE is answered with the `SIZE` bytes of
/// Body(KEY, SIZE), without a copy and without a disk. Answers HEAD, If-None-Match, single ranges
/// (with If-Range), keep-alive and pipelining. It runs on threads of its own from start() until it
/// is destroyed, which closes all connections.
class Origin {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    std::uint16_t port = 0;  // 0: the kernel picks one
    unsigned threads = 1;
    std::chrono::seconds max_age{86'400};
  };
  /// Errors: address_in_use, permission_denied, invalid_argument (not a numeric address).
  static Result<std::unique_ptr<Origin>> start(const Options& options);
  ~Origin();

  tcp::endpoint endpoint() const;
  /// "http://127.0.0.1:40123"
  std::string url() const;
  const OriginCounters& counters() const noexcept;
  /// Processor seconds its threads have used so far.
  double cpu_seconds() const;

 private:
  Origin();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace secondsight::loadtest
