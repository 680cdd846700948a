#pragma once
#include <cstdint>

#include "admission/sighting_journal.h"
#include "config/settings.h"

namespace secondsight::proxy {

/// How the sightings of a filter of that size are kept under these settings, so that whoever opens
/// the journal does it alike.
admission::SightingJournal::Options journal_options(const Settings& settings,
                                                    const admission::FilterSize& size,
                                                    std::uint64_t seed_id) noexcept;

}  // namespace secondsight::proxy
