#include "proxy/sighting_import.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
namespace errc = boost::system::errc;
using admission::FilterSize;
using admission::Snapshot;
using admission::TwoGenerationFilter;

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g %%", share * 100);
  return text.data();
}

std::string explain_rate(double rate, double rate_max) {
  return "this filter's older one would take " + percent(rate) +
         " of strangers for repeats, and at most " + percent(rate_max) +
         " is allowed: it holds too many keys for [admission] expected_keys, or too much was "
         "imported within one window";
}

/// A number from 0 up, however the parser keeps it.
template <class Number>
bool read_number(const json::object& object, std::string_view name, Number& out) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return false;
  json::error_code error;
  const auto number = value->to_number<Number>(error);
  if (error) return false;
  out = number;
  return true;
}

}  // namespace

std::string explain_unreadable(const boost::system::error_code& error) {
  if (error == errc::bad_message) return "no snapshot of sightings, or its header is damaged";
  if (error == errc::value_too_large) return "cut off: it has fewer bytes than it claims";
  if (error == errc::protocol_not_supported) return "written by a newer version";
  return error.message();
}

SnapshotImport refuse_import(std::string reason) {
  SnapshotImport import;
  import.refused = 1;
  import.reason = std::move(reason);
  return import;
}

void note_unkept(SnapshotImport& import, const boost::system::error_code& error) {
  import.is_kept = false;
  if (!import.reason.empty()) import.reason += "; ";
  import.reason += "not kept for a restart: ";
  import.reason += error == errc::no_space_on_device
                       ? "no space (sightings take at most a 16th of [cache] disk)"
                       : error.message();
}

std::optional<std::string> explain_misfit(const Snapshot::Header& header, std::uint64_t seed_id,
                                          const FilterSize& size) {
  if (header.seed_id != seed_id) {
    return "it was made under another seed: the same key has other bits there. Give both "
           "installations the same seed file (before the first start of one of them)";
  }
  if (header.line_count != size.line_count) {
    return "its filter has " + std::to_string(header.line_count) + " lines, this one has " +
           std::to_string(size.line_count) +
           ": give both [admission] the same expected_keys and false_positive_rate";
  }
  return std::nullopt;
}

SnapshotImport import_snapshot(const Snapshot& snapshot, TwoGenerationFilter& filter,
                               std::uint64_t seed_id, double rate_max, SnapshotImport so_far) {
  if (auto misfit = explain_misfit(snapshot.header, seed_id, filter.size())) {
    SnapshotImport refusal = refuse_import(std::move(*misfit));
    refusal.refused = static_cast<unsigned>(snapshot.generations.size());
    return refusal;
  }
  SnapshotImport import = std::move(so_far);
  import.is_busy = false;
  import.damaged_bytes = snapshot.damaged_bytes;
  for (; import.looked_at < snapshot.generations.size(); ++import.looked_at) {
    const auto& words = snapshot.generations[import.looked_at];
    if (std::all_of(words.begin(), words.end(), [](std::uint64_t word) { return word == 0; }))
      continue;
    if (import.refused > 0) {
      ++import.refused;
      continue;
    }
    const auto result = filter.merge_into_previous(words, rate_max);
    if (!result) {
      import.is_busy = true;
      return import;
    }
    if (result->is_merged) {
      ++import.merged;
      import.new_bits += result->new_bits;
    } else {
      ++import.refused;
      import.reason = (import.looked_at == 0 ? "with its latest generation "
                                             : "with its older generation, too, ") +
                      explain_rate(result->false_positive_rate, rate_max);
    }
  }
  return import;
}

SnapshotImport import_offered(FileSystem& files, TwoGenerationFilter& filter, std::uint64_t seed_id,
                              double rate_max, SnapshotImport so_far) {
  const auto refuse_unread = [](const boost::system::error_code& error) {
    return refuse_import(std::string(kOfferedSnapshot) + ": " + explain_unreadable(error));
  };
  if (filter.sweeping()) {  // before a large file is read for nothing
    so_far.is_busy = true;
    return so_far;
  }
  const auto file = files.open(kOfferedSnapshot);
  if (!file) return refuse_unread(file.error());
  // Before memory is taken for bits that do not fit.
  const auto header = admission::read_snapshot_header(**file);
  if (!header) return refuse_unread(header.error());
  if (auto misfit = explain_misfit(*header, seed_id, filter.size()))
    return refuse_import(std::move(*misfit));
  const auto snapshot = admission::read_snapshot(**file);
  if (!snapshot) return refuse_unread(snapshot.error());
  return import_snapshot(*snapshot, filter, seed_id, rate_max, std::move(so_far));
}

std::string to_json(const SnapshotImport& import) {
  return json::serialize(json::object{{"merged", import.merged},
                                      {"refused", import.refused},
                                      {"new_bits", import.new_bits},
                                      {"damaged_bytes", import.damaged_bytes},
                                      {"kept", import.is_kept},
                                      {"reason", import.reason}});
}

std::optional<SnapshotImport> read_snapshot_import(std::string_view text) {
  json::error_code error;
  const json::value content = json::parse(text, error);
  const json::object* object = error ? nullptr : content.if_object();
  if (object == nullptr) return std::nullopt;
  SnapshotImport import;
  if (!read_number(*object, "merged", import.merged) ||
      !read_number(*object, "refused", import.refused) ||
      !read_number(*object, "new_bits", import.new_bits) ||
      !read_number(*object, "damaged_bytes", import.damaged_bytes)) {
    return std::nullopt;
  }
  const json::value* kept = object->if_contains("kept");
  const json::value* reason = object->if_contains("reason");
  if (kept == nullptr || !kept->is_bool() || reason == nullptr || !reason->is_string())
    return std::nullopt;
  import.is_kept = kept->get_bool();
  import.reason = std::string(reason->get_string());
  return import;
}

}  // namespace secondsight::proxy
