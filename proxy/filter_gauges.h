#pragma once
#include "admission/admission_policy.h"
#include "config/clock.h"
#include "config/metrics.h"

namespace secondsight::proxy {

/// The admission filter's numbers at /metrics (docs/operations.md). A scrape looks at the filter
/// once, however many of them there are. All outlive the metrics' last scrape.
void register_filter_gauges(Metrics& metrics, const admission::AdmissionPolicy& policy,
                            const Clock& clock);

}  // namespace secondsight::proxy
