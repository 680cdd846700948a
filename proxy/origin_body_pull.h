#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <boost/asio/cancellation_signal.hpp>

#include "proxy/asio.h"
#include "proxy/body.h"

namespace secondsight::proxy {

/// Turns a BodySource, which is awaited, into what libcurl wants: a read that either has bytes or
/// says "later". Shared by the fetch and by the coroutine that waits for the next piece, because
/// that coroutine may still be suspended when the fetch ends. One thread, io's.
class OriginBodyPull : public std::enable_shared_from_this<OriginBodyPull> {
 public:
  enum class State : std::uint8_t {
    Ready,    // bytes were copied
    Waiting,  // asked the source; `on_ready` will be called
    End,      // the whole body was read
    Failed,   // the source failed, or its size is not the promised one
  };
  struct Piece {
    State state = State::Waiting;
    std::size_t bytes = 0;
  };

  /// `length` as promised to the origin; empty when it is not known.
  OriginBodyPull(net::io_context& io, BodySource& source, std::optional<std::uint64_t> length,
                 std::function<void()> on_ready);

  /// Copies what has come; asks the source for more when there is nothing.
  Piece read(std::span<std::byte> out);
  /// Whether it is the source, not the origin, that is waited for.
  bool waiting() const noexcept { return pulling_; }
  /// Uses the source no more: a call of next() that still waits is cancelled, its result is
  /// dropped.
  void abandon();

 private:
  void pull();
  static net::awaitable<void> pull_one(std::shared_ptr<OriginBodyPull> self);
  void take(Result<std::span<const std::byte>> piece);

  net::io_context& io_;
  BodySource* source_;  // empty once abandoned
  std::optional<std::uint64_t> left_;
  std::function<void()> on_ready_;
  net::cancellation_signal cancel_;
  std::span<const std::byte> piece_;  // of the source, until its next()
  State end_ = State::Waiting;        // End or Failed once known
  bool pulling_ = false;
};

}  // namespace secondsight::proxy
