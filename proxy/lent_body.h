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
      : body_(body), loan_(std::make_shared<Loan>(io)) {}

  net::awaitable<Result<std::span<const std::byte>>> next() override {
    const Use use(loan_);
    co_return co_await body_.next();
  }

  /// Returns when no read is under way.
  net::awaitable<void> returned() {
    while (loan_->in_use) co_await loan_->returned->wait();
  }

 private:
  /// Outlives the body's owner where an event loop is destroyed with both under way, in any order.
  struct Loan {
    explicit Loan(net::io_context& io) : returned(std::make_shared<Signal>(io)) {}
    const std::shared_ptr<Signal> returned;
    bool in_use = false;
  };
  /// Ends with the coroutine, cancelled or not.
  class Use {
   public:
    explicit Use(std::shared_ptr<Loan> loan) : loan_(std::move(loan)) { loan_->in_use = true; }
    ~Use() {
      loan_->in_use = false;
      loan_->returned->notify();
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    const std::shared_ptr<Loan> loan_;
  };

  BodySource& body_;
  const std::shared_ptr<Loan> loan_;
};

}  // namespace secondsight::proxy
