#include "proxy/disk_pool.h"

#include <future>
#include <memory>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <gtest/gtest.h>

namespace secondsight::proxy {
namespace {

/// One pool thread held until release().
class Gate {
 public:
  auto hold() {
    return [this] {
      entered_.set_value();
      released_.get_future().wait();
      return 0;
    };
  }
  void wait_entered() { entered_.get_future().wait(); }
  void release() { released_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> released_;
};

TEST(DiskPool, RunsElsewhereAndResumesHere) {
  DiskPool pool(2, 100);
  net::io_context io(1);
  const auto here = std::this_thread::get_id();
  int done = 0;
  const auto task = [&](int number) -> net::awaitable<void> {
    auto call = [number, owned = std::make_unique<int>(number)] {
      return std::pair(*owned + number, std::this_thread::get_id());
    };
    const auto answer = co_await pool.run(std::move(call));
    EXPECT_TRUE(answer.has_value());
    if (!answer) co_return;
    EXPECT_EQ(answer->first, 2 * number);
    EXPECT_NE(answer->second, here);
    EXPECT_EQ(std::this_thread::get_id(), here);
    ++done;
  };
  for (int i = 0; i < 50; ++i) net::co_spawn(io, task(i), net::detached);
  io.run();
  EXPECT_EQ(done, 50);
}

TEST(DiskPool, RefusesWhenTheQueueIsFull) {
  DiskPool pool(1, 2);
  net::io_context io(1);
  Gate gate;
  std::vector<int> answers;
  const auto hold = [&]() -> net::awaitable<void> {
    auto call = gate.hold();
    (void)co_await pool.run(std::move(call));
  };
  const auto ask = [&](int number) -> net::awaitable<void> {
    auto call = [number] { return number; };
    const auto answer = co_await pool.run(std::move(call));
    answers.push_back(answer.value_or(-1));
  };
  net::co_spawn(io, hold(), net::detached);
  io.poll();
  gate.wait_entered();
  for (int i = 1; i <= 4; ++i) net::co_spawn(io, ask(i), net::detached);
  io.poll();
  EXPECT_EQ(answers, (std::vector<int>{-1, -1}));
  gate.release();
  io.run();
  EXPECT_EQ(answers, (std::vector<int>{-1, -1, 1, 2}));
}

TEST(DiskPool, StopsWithWorkPending) {
  DiskPool pool(1, 10);
  net::io_context io(1);
  Gate gate;
  int held = -1;
  int refused = 0;
  const auto hold = [&]() -> net::awaitable<void> {
    auto call = gate.hold();
    held = (co_await pool.run(std::move(call))).value_or(-2);
  };
  const auto ask = [&]() -> net::awaitable<void> {
    auto call = [] { return 1; };
    if (!co_await pool.run(std::move(call))) ++refused;
  };
  net::co_spawn(io, hold(), net::detached);
  io.poll();
  gate.wait_entered();
  for (int i = 0; i < 5; ++i) net::co_spawn(io, ask(), net::detached);
  io.poll();
  auto stopping = std::async(std::launch::async, [&] { pool.stop(); });
  while (refused < 5) io.run_one();  // refused although the only thread is busy
  EXPECT_EQ(held, -1);
  gate.release();
  stopping.get();
  net::co_spawn(io, ask(), net::detached);
  io.run();
  EXPECT_EQ(held, 0);
  EXPECT_EQ(refused, 6);
}

TEST(DiskPool, CoroutinesNeverResumedAreDestroyedWithTheirLoop) {
  auto owned = std::make_shared<int>(1);
  {
    net::io_context io(1);
    DiskPool pool(1, 10);
    Gate gate;
    const auto task = [&](std::shared_ptr<int> kept) -> net::awaitable<void> {
      auto call = gate.hold();
      (void)co_await pool.run(std::move(call));
      kept.reset();
    };
    net::co_spawn(io, task(owned), net::detached);
    io.poll();
    gate.wait_entered();
    EXPECT_EQ(owned.use_count(), 2);
    gate.release();
    pool.stop();
  }
  EXPECT_EQ(owned.use_count(), 1);
}

}  // namespace
}  // namespace secondsight::proxy
