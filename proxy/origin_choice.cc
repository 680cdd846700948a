#include "proxy/origin_choice.h"

#include <algorithm>

namespace secondsight::proxy {

std::optional<std::size_t> OriginChoice::pick(const std::vector<bool>& tried,
                                              SteadyTime now) noexcept {
  std::optional<std::size_t> last_resort;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    const std::size_t candidate = (turn_ + i) % servers_.size();
    if (tried[candidate]) continue;
    if (servers_[candidate].retry_at <= now) {
      turn_ = candidate + 1;
      return candidate;
    }
    if (!last_resort) last_resort = candidate;
  }
  if (last_resort) turn_ = *last_resort + 1;
  return last_resort;
}

bool OriginChoice::is_down(SteadyTime now) noexcept {
  for (Server& server : servers_) {
    if (server.back_off == std::chrono::seconds{0}) return false;
    if (now < std::max(server.retry_at, server.probed_until)) continue;
    server.probed_until = now + kShortestBackOff;
    return false;
  }
  return true;
}

void OriginChoice::failed(std::size_t origin, SteadyTime now) noexcept {
  Server& server = servers_[origin];
  // A burst of requests that fail together is one failure.
  if (now < server.retry_at) return;
  server.back_off = std::clamp(server.back_off * 2, kShortestBackOff, kLongestBackOff);
  server.retry_at = now + server.back_off;
}

}  // namespace secondsight::proxy
