#include "proxy/origin_body_pull.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

namespace secondsight::proxy {

OriginBodyPull::OriginBodyPull(net::io_context& io, BodySource& source,
                               std::optional<std::uint64_t> length, std::function<void()> on_ready)
    : io_(io), source_(&source), left_(length), on_ready_(std::move(on_ready)) {
  if (left_ == 0U) end_ = State::End;
}

OriginBodyPull::Piece OriginBodyPull::read(std::span<std::byte> out) {
  if (source_ == nullptr) return {State::Failed, 0};
  if (piece_.empty()) {
    if (end_ != State::Waiting) return {end_, 0};
    if (!pulling_) pull();
    return {State::Waiting, 0};
  }
  const std::size_t bytes = std::min(out.size(), piece_.size());
  std::memcpy(out.data(), piece_.data(), bytes);
  piece_ = piece_.subspan(bytes);
  if (left_) {
    *left_ -= bytes;
    if (*left_ == 0) end_ = State::End;
  }
  return {State::Ready, bytes};
}

void OriginBodyPull::abandon() {
  source_ = nullptr;
  piece_ = {};
  on_ready_ = nullptr;
  if (pulling_) cancel_.emit(net::cancellation_type::terminal);
}

// Posted: read() runs inside libcurl, and a coroutine starts to run where it is spawned.
void OriginBodyPull::pull() {
  pulling_ = true;
  net::post(io_, [self = shared_from_this()] {
    if (self->source_ == nullptr) return;
    const auto on_end = [self](const std::exception_ptr& error) {
      if (error) self->take(make_error_code(boost::system::errc::operation_canceled));
    };
    net::co_spawn(self->io_, pull_one(self),
                  net::bind_cancellation_slot(self->cancel_.slot(), on_end));
  });
}

net::awaitable<void> OriginBodyPull::pull_one(std::shared_ptr<OriginBodyPull> self) {
  // co_spawn may have been deferred past an abandon().
  if (self->source_ == nullptr) co_return;
  const auto piece = co_await self->source_->next();
  self->take(piece);
}

void OriginBodyPull::take(Result<std::span<const std::byte>> piece) {
  pulling_ = false;
  if (source_ == nullptr) return;
  if (!piece || (piece->empty() && left_) || (left_ && piece->size() > *left_)) {
    end_ = State::Failed;
  } else if (piece->empty()) {
    end_ = State::End;
  } else {
    piece_ = *piece;
  }
  on_ready_();
}

}  // namespace secondsight::proxy
