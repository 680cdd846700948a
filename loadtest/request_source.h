#pragma once
#include <cstdint>
#include <string>

namespace secondsight::loadtest {

/// One request of a workload.
struct SourceRequest {
  double time_seconds = 0;       // from the first request, never decreasing
  std::string key;               // opaque; any bytes
  std::uint64_t size_bytes = 0;  // of the body that the origin answers with
};

/// Requests in order, from a trace or a model, one at a time: a source of any length needs bounded
/// memory. One thread.
class RequestSource {
 public:
  virtual ~RequestSource() = default;
  /// Overwrites `request` (reusing its storage); false at the end, then forever.
  virtual bool next(SourceRequest& request) = 0;
};

}  // namespace secondsight::loadtest
