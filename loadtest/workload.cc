#include "loadtest/workload.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "config/check.h"

namespace secondsight::loadtest {
namespace {

void write_key(std::string& key, char kind, std::uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number, 36).ptr;
  key.assign(1, kind).append(std::begin(digits), end);
}

}  // namespace

WorkloadModel WorkloadModel::scaled_to(std::uint64_t request_count) const {
  WorkloadModel scaled = *this;
  const auto scale = [&](std::uint64_t n) {
    const double ratio = static_cast<double>(request_count) / static_cast<double>(requests);
    return std::max<std::uint64_t>(
        1, static_cast<std::uint64_t>(std::llround(static_cast<double>(n) * ratio)));
  };
  scaled.body_objects = scale(body_objects);
  scaled.burst_window = scale(burst_window);
  scaled.requests = request_count;
  return scaled;
}

WorkloadModel edge_web(std::uint64_t requests) {
  return WorkloadModel{}.scaled_to(requests);
}

std::optional<WorkloadModel> preset(std::string_view name, std::uint64_t requests) {
  if (name == "edge-web") return edge_web(requests);
  return std::nullopt;
}

// Of n body requests, n (1 - burst) are fresh draws, and each request is repeated `burst` times on
// average, about Poisson. So an object drawn freshly once stays a one-hit with probability
// e^-burst.
double tail_share_for(const WorkloadModel& model) {
  std::vector<double> shares(model.body_objects);
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    shares[i] = std::pow(static_cast<double>(i + 1), -model.zipf_exponent);
    sum += shares[i];
  }
  const auto one_hit_share_at = [&](double tail_share) {
    const auto requests = static_cast<double>(model.requests);
    const double draws = requests * (1 - tail_share) * (1 - model.burst_share);
    double asked = 0;
    double once = 0;
    for (const double weight : shares) {
      const double expected = draws * weight / sum;  // Poisson for the binomial: many draws
      const double none = std::exp(-expected);
      asked += 1 - none;
      once += expected * none;
    }
    const double tail = requests * tail_share;
    return (tail + once * std::exp(-model.burst_share)) / (tail + asked);
  };
  double low = 0;
  double high = 1;
  if (one_hit_share_at(low) >= model.one_hit_share) return 0;
  constexpr int kHalvings = 30;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (one_hit_share_at(middle) < model.one_hit_share ? low : high) = middle;
  }
  return high;
}

ModelSource::ModelSource(const WorkloadModel& model, std::uint64_t seed)
    : model_(model),
      seed_(mix64(seed)),
      tail_share_(tail_share_for(model)),
      zipf_(model.body_objects, model.zipf_exponent),
      random_(seed) {
  CHECK(model.burst_window >= 1);
  recent_.resize(model.burst_window);
}

bool ModelSource::next(SourceRequest& request) {
  if (sent_ == model_.requests) return false;
  request.time_seconds = static_cast<double>(sent_) / model_.requests_per_second;
  ++sent_;
  const bool tail = random_.uniform() < tail_share_;
  const std::uint64_t object = tail ? tail_objects_++ : next_body_object();
  write_key(request.key, tail ? 't' : 'b', object);
  // A size hangs on the object and the seed alone, never on when it is asked.
  request.size_bytes = model_.sizes.size_for(mix64(seed_ ^ (object * 2 + (tail ? 1 : 0))));
  return true;
}

std::uint64_t ModelSource::next_body_object() {
  const std::uint64_t reach = std::min(body_requests_, model_.burst_window);
  std::uint64_t object = 0;
  if (reach > 0 && random_.uniform() < model_.burst_share) {
    const double distance = std::exp(random_.uniform() * std::log(static_cast<double>(reach) + 1));
    const auto back = std::min(static_cast<std::uint64_t>(distance), reach);
    object = recent_[(body_requests_ - back) % recent_.size()];
  } else {
    object = zipf_.sample(random_);
  }
  recent_[body_requests_++ % recent_.size()] = object;
  return object;
}

}  // namespace secondsight::loadtest
