#pragma once
#include <memory>
#include <utility>

#include "proxy/body.h"
#include "proxy/signal.h"

namespace secondsight::proxy {

/// A request body lent to a fetch. The fetch may be given up while a read of the client's
/// connection is still under way; the connection is not to be used before that read has ended. One
/// worker's thread.
class LentBody final : public BodySource {
 public:
  LentBody(BodySource& body, net::io_context& io)
      : body_(body), returned_(std::make_shared<Signal>(io)) {}

  net::awaitable<Result<std::span<const std::byte>>> next() override {
    const Use use(*this);
    co_return co_await body_.next();
  }

  /// Returns when no read is under way.
  net::awaitable<void> returned() {
    while (in_use_) co_await returned_->wait();
  }

 private:
  /// Ends with the coroutine, cancelled or not.
  class Use {
   public:
    explicit Use(LentBody& body) : body_(body) { body_.in_use_ = true; }
    ~Use() {
      body_.in_use_ = false;
      body_.returned_->notify();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    LentBody& body_;
  };

  BodySource& body_;
  std::shared_ptr<Signal> returned_;
  bool in_use_ = false;
};

}  // namespace secondsight::proxy
