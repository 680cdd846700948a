#pragma once
#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

#include "config/clock.h"

namespace secondsight::proxy {

/// Which origin gets the next request: in turn, without those that lately could not be reached.
/// Pure but for its own memory; one thread.
class OriginChoice {
 public:
  static constexpr std::chrono::seconds kShortestBackOff{1};
  static constexpr std::chrono::seconds kLongestBackOff{30};

  explicit OriginChoice(std::size_t count) : servers_(count) {}

  /// The next origin in turn that is not in `tried` (one flag per origin): one that is not backing
  /// off, else any, else none.
  std::optional<std::size_t> pick(const std::vector<bool>& tried, SteadyTime now) noexcept;
  /// Whether no origin is worth asking for what can do without: each backs off, or has just been
  /// tried by the first who asked after its back-off had ended.
  bool is_down(SteadyTime now) noexcept;
  /// It could not be reached: it backs off, twice as long with each failure after a back-off ended.
  void failed(std::size_t origin, SteadyTime now) noexcept;
  /// It took a connection: the next failure starts small again.
  void reached(std::size_t origin) noexcept { servers_[origin] = {}; }

 private:
  struct Server {
    std::chrono::seconds back_off{0};
    SteadyTime retry_at = SteadyTime::min();
    SteadyTime probed_until = SteadyTime::min();
  };
  std::vector<Server> servers_;
  std::size_t turn_ = 0;
};

}  // namespace secondsight::proxy
