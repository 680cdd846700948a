#include "proxy/sighting_options.h"

#include <algorithm>

namespace secondsight::proxy {

admission::SightingJournal::Options journal_options(const Settings& settings,
                                                    const admission::FilterSize& size,
                                                    std::uint64_t seed_id) noexcept {
  constexpr std::uint64_t kShareMax = 16;  // of a small disk, one in so many bytes at most
  const AdmissionSettings& filter = settings.admission;
  const std::uint64_t wanted = admission::SightingJournal::bytes_for(size, filter.window);
  return {.seed_id = seed_id,
          .size = size,
          .window = filter.window,
          .previous_rate_max = admission::previous_rate_max(filter.false_positive_rate),
          .bytes_max = std::min(wanted, settings.cache.disk_bytes / kShareMax)};
}

}  // namespace secondsight::proxy
