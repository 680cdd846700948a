#include "loadtest/baseline.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace secondsight::loadtest {
namespace {

using ObjectIndex = std::uint32_t;
constexpr std::size_t kNever = SIZE_MAX;

/// For each request, the next one of its object.
std::vector<std::size_t> next_requests(const ModelTrace& trace) {
  std::vector<std::size_t> next(trace.requests.size(), kNever);
  std::vector<std::size_t> later(trace.body_bytes.size(), kNever);
  for (std::size_t i = trace.requests.size(); i-- > 0;)
    next[i] = std::exchange(later[trace.requests[i]], i);
  return next;
}

/// What a clairvoyant cache holds: objects of nearly one size together, by their next request. The
/// victim is then the farthest of one of a few dozen classes.
class FutureQueue {
 public:
  struct Held {
    std::size_t next_request = 0;
    ObjectIndex object = 0;
    friend auto operator<=>(const Held&, const Held&) = default;
  };

  explicit FutureQueue(const std::vector<std::uint64_t>& charged_bytes)
      : charged_bytes_(charged_bytes) {}

  void insert(const Held& held) { classes_[class_of(held.object)].insert(held); }
  void erase(const Held& held) {
    const auto at = classes_.find(class_of(held.object));
    at->second.erase(held);
    if (at->second.empty()) classes_.erase(at);
  }

  Held victim(std::size_t now) const {
    Held worst;
    double worst_cost = -1;
    for (const auto& [size_class, held] : classes_) {
      const Held& farthest = *held.rbegin();
      const double cost = static_cast<double>(farthest.next_request - now) *
                          static_cast<double>(charged_bytes_[farthest.object]);
      if (cost > worst_cost) {
        worst_cost = cost;
        worst = farthest;
      }
    }
    return worst;
  }

 private:
  int class_of(ObjectIndex object) const {
    constexpr double kClassesPerDoubling = 8;
    return static_cast<int>(kClassesPerDoubling *
                            std::log2(static_cast<double>(charged_bytes_[object])));
  }

  const std::vector<std::uint64_t>& charged_bytes_;
  std::map<int, std::set<Held>> classes_;
};

}  // namespace

ModelResult simulate_model(const ModelTrace& trace, std::uint64_t capacity_bytes, Eviction eviction,
                           std::uint64_t body_bytes_max) {
  ModelResult result;
  std::list<ObjectIndex> queue;  // the next to go last
  std::vector<std::optional<std::list<ObjectIndex>::iterator>> places(trace.body_bytes.size());
  std::uint64_t used_bytes = 0;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const ObjectIndex object = trace.requests[i];
    if (const auto& place = places[object]) {
      ++result.hits;
      result.hit_bytes += trace.body_bytes[object];
      if (eviction == Eviction::LeastRecentlyUsed) queue.splice(queue.begin(), queue, *place);
      continue;
    }
    const std::uint64_t bytes = trace.charged_bytes[object];
    if (!trace.admitted.empty() && !trace.admitted[i]) continue;
    if (bytes > capacity_bytes || trace.body_bytes[object] > body_bytes_max) continue;
    while (used_bytes + bytes > capacity_bytes) {
      used_bytes -= trace.charged_bytes[queue.back()];
      places[queue.back()].reset();
      queue.pop_back();
    }
    queue.push_front(object);
    places[object] = queue.begin();
    used_bytes += bytes;
    result.admitted_bytes += bytes;
  }
  return result;
}

ModelResult simulate_clairvoyant(const ModelTrace& trace, std::uint64_t capacity_bytes) {
  ModelResult result;
  const std::vector<std::size_t> next = next_requests(trace);
  FutureQueue queue(trace.charged_bytes);
  std::vector<bool> is_held(trace.body_bytes.size());
  std::uint64_t used_bytes = 0;
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const ObjectIndex object = trace.requests[i];
    const bool was_held = is_held[object];
    if (was_held) {
      ++result.hits;
      result.hit_bytes += trace.body_bytes[object];
      queue.erase({i, object});
      used_bytes -= trace.charged_bytes[object];
      is_held[object] = false;
    }
    if (next[i] == kNever || trace.charged_bytes[object] > capacity_bytes) continue;
    queue.insert({next[i], object});
    used_bytes += trace.charged_bytes[object];
    is_held[object] = true;
    while (used_bytes > capacity_bytes) {
      const FutureQueue::Held victim = queue.victim(i);
      queue.erase(victim);
      used_bytes -= trace.charged_bytes[victim.object];
      is_held[victim.object] = false;
    }
    if (!was_held && is_held[object]) result.admitted_bytes += trace.charged_bytes[object];
  }
  return result;
}

std::uint64_t hits_bound(const ModelTrace& trace, std::uint64_t capacity_bytes) {
  const std::vector<std::size_t> next = next_requests(trace);
  std::vector<double> costs;  // sums of 2^53 and more need no exact bytes
  for (std::size_t i = 0; i < next.size(); ++i) {
    const std::uint64_t bytes = trace.charged_bytes[trace.requests[i]];
    if (next[i] == kNever || bytes > capacity_bytes) continue;
    costs.push_back(static_cast<double>(next[i] - i) * static_cast<double>(bytes));
  }
  std::sort(costs.begin(), costs.end());
  double left = static_cast<double>(capacity_bytes) * static_cast<double>(trace.requests.size());
  std::uint64_t hits = 0;
  for (const double cost : costs) {
    if (cost > left) break;
    left -= cost;
    ++hits;
  }
  return hits;
}

}  // namespace secondsight::loadtest
