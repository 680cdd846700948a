#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "loadtest/random.h"
#include "loadtest/request_source.h"
#include "loadtest/size_model.h"
#include "loadtest/zipf.h"

namespace secondsight::loadtest {

/// What edge traffic looks like, in few numbers. Objects are of two kinds: the tail, each asked
/// exactly once, and the body, whose popularity is Zipf's. Body requests come in bursts: a share of
/// them repeats a request of the recent past, at a distance drawn log-uniformly.
struct WorkloadModel {
  std::uint64_t requests = 66'987;
  std::uint64_t body_objects = 80'384;  // catalogue; most of its far ranks are asked once or never
  double zipf_exponent = 0.85;
  double one_hit_share = 0.75;       // of the objects asked, those asked once (body ones included)
  double burst_share = 0.2;          // of body requests
  std::uint64_t burst_window = 67;   // longest distance, in body requests
  double requests_per_second = 100;  // gives requests their times
  SizeModel sizes;

  /// Same shape at another length: catalogue and window grow in proportion.
  WorkloadModel scaled_to(std::uint64_t request_count) const;
};

/// Fitted to a campus proxy's trace, with 75 % of objects asked once: docs/experiments.md.
WorkloadModel edge_web(std::uint64_t requests);
/// "edge-web"; empty for a name that is no preset.
std::optional<WorkloadModel> preset(std::string_view name, std::uint64_t requests);

/// The share of requests that must go to the tail so that one_hit_share is reached on average. 0
/// when the body alone has more objects asked once.
double tail_share_for(const WorkloadModel& model);

/// The model's requests: a pure function of the model and the seed. Keys of the tail start with
/// "t", those of the body with "b". Memory: burst_window numbers.
class ModelSource final : public RequestSource {
 public:
  ModelSource(const WorkloadModel& model, std::uint64_t seed);
  bool next(SourceRequest& request) override;

 private:
  std::uint64_t next_body_object();

  WorkloadModel model_;
  std::uint64_t seed_;
  double tail_share_;
  Zipf zipf_;
  Random random_;
  std::uint64_t sent_ = 0;
  std::uint64_t tail_objects_ = 0;
  std::uint64_t body_requests_ = 0;
  std::vector<std::uint64_t> recent_;  // ring of the last body objects
};

}  // namespace secondsight::loadtest
