#include "proxy/settings_report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "admission/admission_policy.h"
#include "admission/bloom_math.h"
#include "admission/cuckoo_filter.h"
#include "admission/filter_report.h"
#include "cache/log/object_log.h"
#include "config/units.h"
#include "proxy/machine_memory.h"
#include "proxy/sighting_options.h"

namespace secondsight::proxy {
namespace {

std::string address(const ListenAddress& at) {
  const std::string host = at.host.find(':') == std::string::npos ? at.host : "[" + at.host + "]";
  return host + ":" + std::to_string(at.port);
}

void describe_filter(const Settings& settings, std::string& out) {
  out += admission::describe_filter(settings.admission, "filter     ");
  const admission::FilterSurroundings around{.machine_bytes = machine_memory_bytes(),
                                             .memory_bytes = settings.cache.memory_bytes,
                                             .disk_bytes = settings.cache.disk_bytes};
  for (const std::string& warning : admission::warn_of_filter(settings.admission, around))
    out += "warning    " + warning + "\n";
}

/// What of the filter outlives a restart.
void describe_journal(const Settings& settings, std::string& out) {
  if (settings.cache.disk_bytes == 0) return;
  const auto size = admission::size_filter(settings.admission.expected_keys,
                                           settings.admission.false_positive_rate);
  const auto options = journal_options(settings, size, 0);
  const std::uint64_t wanted =
      admission::SightingJournal::bytes_for(size, settings.admission.window);
  out += "sightings  outlive a restart, in at most " + format_bytes(options.bytes_max) +
         " of the disk\n";
  if (options.bytes_max < wanted) {
    out += "warning    that is a sixteenth of [cache] disk, and two full generations take " +
           format_bytes(wanted) + ": a restart may forget the oldest sightings\n";
  }
}

/// What the policy does with its own settings, if it has any.
std::string policy_words(const AdmissionSettings& admission) {
  std::string name(to_string(admission.policy));
  std::array<char, 32> chance{};
  std::snprintf(chance.data(), chance.size(), "%.6g", admission.probability);
  switch (admission.policy) {
    case PolicyName::Probability:
      return name + ": each sighting is admitted with chance " + chance.data();
    case PolicyName::SizeProbability:
      return name + ": a body of " + format_bytes(admission.size_scale_bytes) +
             " is admitted with chance 0.37, one of half of that with 0.61, twice that 0.14";
    case PolicyName::NthSighting:
      return name + ": at sighting " + std::to_string(admission.sightings) +
             ", by as many filters less one";
    default:
      return name;
  }
}

std::string scrub_words(const CacheSettings& cache) {
  if (cache.disk_bytes == 0 || cache.scrub_bytes == 0) return "off";
  const std::chrono::seconds round{cache.disk_bytes / cache.scrub_bytes};
  return format_bytes(cache.scrub_bytes) + " a second: a full disk takes " +
         format_duration(std::max(round, std::chrono::seconds{1}));
}

std::string list(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string stale_words(std::chrono::milliseconds longest) {
  return longest.count() == 0 ? "only as long as the response or the request allows"
                              : "at most " + format_duration(longest) + " past its freshness";
}

/// One line for each rule; a site without any has the URL for its key.
void describe_site(const SiteSettings& site, std::string& out) {
  out += "site       " + list(site.hosts) + "\n";
  const auto line = [&out](const std::string& text) { out += "           " + text + "\n"; };
  const std::size_t before = out.size();
  if (!site.keep_params.empty()) line("of the query only: " + list(site.keep_params));
  if (!site.drop_params.empty()) line("of the query all but: " + list(site.drop_params));
  if (site.sort_query) line("parameters in the order of their names");
  if (site.drop_empty_query) line("an empty query is none");
  if (!site.key_headers.empty())
    line("one object for each value of the fields: " + list(site.key_headers));
  if (!site.key_cookies.empty())
    line("one object for each value of the cookies: " + list(site.key_cookies));
  if (site.remove_dot_segments)
    line("dot segments are removed, also from what the origin is asked");
  if (out.size() == before) line("the URL as it is");
  if (site.stale_if_error) line("stale for a failing origin: " + stale_words(*site.stale_if_error));
}

}  // namespace

std::string describe(const Settings& settings) {
  std::string out;
  for (const auto& at : settings.proxy.listen) out += "listen     http://" + address(at) + "\n";
  for (const auto& url : settings.origin.urls) out += "origin     " + url.text + "\n";
  const CacheSettings& cache = settings.cache;
  out += "disk       ";
  if (cache.disk_bytes == 0) {
    out += "none: memory only\n";
  } else {
    const auto segment = cache::log::ObjectLog::segment_bytes_for(cache.disk_bytes);
    out += format_bytes(cache.disk_bytes) + " in " + cache.directory + ", segments of " +
           format_bytes(segment) + "\n";
  }
  out +=
      "memory     " + (cache.memory_bytes == 0 ? "none" : format_bytes(cache.memory_bytes)) + "\n";
  out += "scrub      " + scrub_words(cache) + "\n";
  out += "stale      for a failing origin: " + stale_words(cache.stale_if_error) + "\n";
  out += "policy     " + policy_words(settings.admission) + "\n";
  if (settings.admission.policy == PolicyName::SecondSighting) {
    describe_filter(settings, out);
    describe_journal(settings, out);
  } else if (remembers_sightings(settings.admission.policy)) {
    out += "filter     " + format_bytes(admission::memory_bytes_for(settings.admission)) + " for " +
           std::to_string(settings.admission.expected_keys) +
           " keys in each of two generations, by formula\n";
  }
  out += "admin      " +
         (settings.admin.enabled ? "http://" + address(settings.admin.listen) : "off") + "\n";
  std::string purgers;
  for (const AddressRange& range : settings.purge.allow)
    purgers += (purgers.empty() ? "" : ", ") + to_string(range);
  out += "purge      " +
         (purgers.empty() ? "through the admin listener only" : "PURGE from " + purgers) + "\n";
  for (const SiteSettings& site : settings.sites) describe_site(site, out);
  return out;
}

std::optional<BadFilterSetting> find_bad_filter_setting(const AdmissionSettings& settings) {
  if (!remembers_sightings(settings.policy)) return std::nullopt;
  if (const auto reason = admission::explain_bad_window(settings.window))
    return BadFilterSetting{"admission.window", "[admission] " + *reason};
  // The other half is for the memory tier, the index of the disk, and everybody else.
  auto reason = admission::explain_bad_size(settings.expected_keys, settings.false_positive_rate,
                                            machine_memory_bytes() / 2);
  if (!reason && settings.policy == PolicyName::Cuckoo)
    reason = admission::explain_bad_cuckoo_rate(settings.false_positive_rate);
  if (!reason && admission::memory_bytes_for(settings) > machine_memory_bytes() / 2) {
    reason = "expected_keys = " + std::to_string(settings.expected_keys) + " takes " +
             format_bytes(admission::memory_bytes_for(settings)) + " in policy " +
             std::string(to_string(settings.policy)) +
             ", more than half of this machine's memory; expect fewer keys, or take another policy";
  }
  if (!reason) return std::nullopt;
  const bool is_rate = reason->starts_with("false_positive_rate");
  return BadFilterSetting{is_rate ? "admission.false_positive_rate" : "admission.expected_keys",
                          "[admission] " + *reason};
}

}  // namespace secondsight::proxy
