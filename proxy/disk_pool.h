#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include "proxy/asio.h"

namespace secondsight::proxy {

/// Threads for calls that block, so that no event loop does. The queue is bounded: a disk that
/// cannot keep up is answered by refusals, not by growing memory. run() from any coroutine's
/// thread.
class DiskPool {
 public:
  DiskPool(unsigned threads, std::size_t queue_max);
  /// Stops.
  ~DiskPool();
  DiskPool(const DiskPool&) = delete;
  DiskPool& operator=(const DiskPool&) = delete;

  /// Calls `f()` on a pool thread and resumes the coroutine on its own executor with what it
  /// returned; empty when the queue is full or the pool stops before `f` began. An exception of `f`
  /// ends the program. `f` must own what it uses: the coroutine may be destroyed while it runs.
  template <class F>
  net::awaitable<std::optional<std::invoke_result_t<F&>>> run(F f);

  /// Lets calls that have begun finish and refuses the others. Idempotent. The event loops of all
  /// waiting coroutines must still exist.
  void stop();

 private:
  class Job {
   public:
    virtual ~Job() = default;
    virtual void run() = 0;
    virtual void refuse() = 0;
  };
  template <class F, class Handler>
  class Call;
  void submit(std::unique_ptr<Job> job);
  void work();

  const std::size_t queue_max_;
  std::mutex mutex_;
  std::condition_variable change_;
  std::deque<std::unique_ptr<Job>> queue_;  // under mutex_, as is_stopping_
  bool is_stopping_ = false;
  std::vector<std::thread> threads_;
};

/// One call and the coroutine that waits for it. The coroutine is only ever touched on its
/// executor.
template <class F, class Handler>
class DiskPool::Call final : public Job {
 public:
  using Answer = std::optional<std::invoke_result_t<F&>>;
  Call(F f, Handler handler)
      : f_(std::move(f)),
        executor_(net::prefer(net::get_associated_executor(handler),
                              net::execution::outstanding_work.tracked)),
        handler_(std::move(handler)) {}
  void run() override { answer(f_()); }
  void refuse() override { answer(std::nullopt); }

 private:
  void answer(Answer result) {
    auto resume = [handler = std::move(handler_), result = std::move(result)]() mutable {
      std::move(handler)(std::move(result));
    };
    net::post(executor_, std::move(resume));
  }

  F f_;
  std::decay_t<decltype(net::prefer(net::get_associated_executor(std::declval<Handler&>()),
                                    net::execution::outstanding_work.tracked))>
      executor_;
  Handler handler_;
};

template <class F>
net::awaitable<std::optional<std::invoke_result_t<F&>>> DiskPool::run(F f) {
  using Answer = std::optional<std::invoke_result_t<F&>>;
  auto initiate = [this](auto handler, F call) {
    using Completion = decltype(handler);
    submit(std::make_unique<Call<F, Completion>>(std::move(call), std::move(handler)));
  };
  auto answer = net::async_initiate<const net::use_awaitable_t<>, void(Answer)>(
      std::move(initiate), net::use_awaitable, std::move(f));
  co_return co_await std::move(answer);
}

}  // namespace secondsight::proxy
