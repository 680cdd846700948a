#pragma once
#include <string>
#include <string_view>
#include <variant>

#include "cache/cache.h"
#include "cache/sites.h"
#include "config/clock.h"
#include "config/settings.h"
#include "proxy/explain.h"
#include "proxy/flight_table.h"

namespace secondsight::proxy {

/// Why a text is no request that could be explained, for people.
struct NotExplained {
  std::string reason;
};

/// Explains requests from the running proxy's own state, and leaves it as it is: no sighting, no
/// use, no flight, nothing brought into memory. (A stored object that cannot be read is dropped, as
/// everywhere.) Thread-safe; reads heads from disk, so it may block. All of it must outlive this.
class Explainer {
 public:
  Explainer(const Settings& settings, const Clock& clock, cache::Cache& cache,
            const cache::Sites& sites, const FlightTable& flights)
      : settings_(settings), clock_(clock), cache_(cache), sites_(sites), flights_(flights) {}

  /// `head`: a whole request head, as a client would send it; read as strictly.
  std::variant<Explanation, NotExplained> explain(std::string_view head) const;

 private:
  Situation look(Request request) const;
  std::shared_ptr<const cache::Object> look_for(const cache::CacheKey& key,
                                                Situation& situation) const;

  const Settings& settings_;
  const Clock& clock_;
  cache::Cache& cache_;
  const cache::Sites& sites_;
  const FlightTable& flights_;
};

}  // namespace secondsight::proxy
