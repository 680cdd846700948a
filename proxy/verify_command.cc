#include "proxy/verify_command.h"

#include <array>
#include <cstdio>
#include <ostream>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "admission/fingerprint.h"
#include "cache/log/segment_format.h"
#include "config/read_only_directory.h"
#include "config/settings.h"
#include "config/units.h"

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
namespace options = boost::program_options;
namespace errc = boost::system::errc;
using cache::log::DamagedPlace;
using cache::log::RecordKind;
using cache::log::VerifyReport;
using Elapsed = std::chrono::duration<double>;

constexpr int kNotWell = 1;
constexpr int kBadUsage = 2;
constexpr std::size_t kLabelWidth = 13;

constexpr std::array kKinds{RecordKind::Object,     RecordKind::Part,      RecordKind::LargeObject,
                            RecordKind::VaryMarker, RecordKind::Tombstone, RecordKind::Purge};

std::string_view word_of(RecordKind kind) noexcept {
  switch (kind) {
    case RecordKind::Object:
      return "object";
    case RecordKind::Part:
      return "part";
    case RecordKind::LargeObject:
      return "large object";
    case RecordKind::VaryMarker:
      return "vary marker";
    case RecordKind::Tombstone:
      return "tombstone";
    case RecordKind::Purge:
      return "purge";
  }
  return "";
}

const cache::log::RecordTally& tally_of(const VerifyReport& report, RecordKind kind) {
  return report.kinds[static_cast<std::size_t>(kind)];
}

double megabytes_a_second(const VerifyReport& report, Elapsed elapsed) {
  const double seconds = elapsed.count();
  return seconds > 0 ? static_cast<double>(report.bytes_read) / 1e6 / seconds : 0;
}

/// "0000002a.segment offset 4096, object of 1.2 KiB that is in use: body damaged (...)".
std::string describe(const DamagedPlace& place) {
  const auto& at = place.location;
  std::string text = cache::log::segment_file_name(at.segment);
  if (at.offset_bytes != 0) text += " offset " + std::to_string(at.offset_bytes);
  if (place.kind) text += ", " + std::string(word_of(*place.kind));
  if (place.kind && at.length_bytes != 0) text += " of " + format_bytes(at.length_bytes);
  if (place.kind && place.is_current) text += " that is in use";
  text += ": " + std::string(to_string(place.damage));
  return place.detail.empty() ? text : text + " (" + place.detail + ")";
}

std::string number(std::uint64_t n, std::string_view one, std::string_view many) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : many);
}

std::string verdict(const VerifyReport& report) {
  if (report.is_clean()) return "every record is whole";
  return number(report.damaged_count, "place is ", "places are ") +
         (report.is_unreadable ? "damaged or unreadable" : "damaged");
}

json::object to_object(const DamagedPlace& place) {
  json::object object{{"segment", place.location.segment},
                      {"offset", place.location.offset_bytes},
                      {"length", place.location.length_bytes},
                      {"reason", to_string(place.damage)},
                      {"in_use", place.is_current}};
  object["kind"] = place.kind ? json::value(word_of(*place.kind)) : json::value(nullptr);
  if (!place.detail.empty()) object["detail"] = place.detail;
  return object;
}

options::options_description known_options() {
  options::options_description known(
      "usage: secondsight verify --config FILE [--json]\n\n"
      "Reads every record of the disk cache while no proxy uses it, and changes nothing.\n"
      "Exit code: 0 when all is well, 1 when something is damaged or cannot be read.\n\n"
      "options");
  known.add_options()("config", options::value<std::string>()->value_name("FILE"),
                      "the proxy's configuration, to find the cache's directory")(
      "json", "print the report as JSON")("help", "print this and exit");
  return known;
}

/// The seed that the directory's records were written under. One without a seed file holds nothing
/// that a proxy could read: then any seed will do to say what is there.
Result<admission::FingerprintSeed> seed_of(const std::string& directory) {
  auto seed = admission::FingerprintSeed::load(directory);
  if (!seed && seed.error() == errc::no_such_file_or_directory)
    return admission::FingerprintSeed(admission::FingerprintSeed::Bytes{});
  return seed;
}

int verify_directory(const std::string& directory, bool as_json, std::ostream& out,
                     std::ostream& error) {
  const auto fail = [&](const std::string& reason) {
    error << "secondsight: cannot verify [cache] directory = \"" << directory << "\": " << reason
          << '\n';
    return kNotWell;
  };
  const auto files = ReadOnlyDirectory::open_directory(directory);
  if (!files) {
    const bool is_busy = files.error() == errc::device_or_resource_busy;
    return fail(is_busy ? "another process uses it; stop it first" : files.error().message());
  }
  const auto seed = seed_of(directory);
  if (!seed) return fail("its seed: " + seed.error().message());
  const auto start = std::chrono::steady_clock::now();
  const auto report = cache::log::verify(**files, *seed);
  if (!report) return fail(report.error().message());
  const Elapsed elapsed = std::chrono::steady_clock::now() - start;
  out << (as_json ? to_json(*report, elapsed) : to_text(*report, elapsed));
  if (!out.flush()) return fail("the report could not be written");
  return report->is_clean() ? 0 : kNotWell;
}

}  // namespace

std::string to_text(const VerifyReport& report, Elapsed elapsed) {
  std::string text;
  const auto line = [&text](std::string label, const std::string& words) {
    label.resize(kLabelWidth, ' ');
    text += label + words + "\n";
  };
  line("segments", std::to_string(report.sealed_segments) + " sealed, " +
                       std::to_string(report.unsealed_segments) + " unsealed");
  if (report.other_seed_segments > 0)
    line("", std::to_string(report.other_seed_segments) +
                 " of another seed: removed at the next start");
  if (report.older_segments > 0)
    line("",
         std::to_string(report.older_segments) + " of an older version: removed at the next start");
  if (report.newer_segments > 0)
    line("", std::to_string(report.newer_segments) + " of a newer version: no start succeeds");
  if (report.unknown_segments > 0)
    line("", std::to_string(report.unknown_segments) + " with nothing of ours in them");
  if (report.other_files > 0) {
    std::string names;
    for (const std::string& name : report.other_names) names += (names.empty() ? "" : ", ") + name;
    line("other files", std::to_string(report.other_files) + ": " + names);
  }
  for (const RecordKind kind : kKinds) {
    const auto& tally = tally_of(report, kind);
    line(kind == kKinds.front() ? "records" : "",
         number(tally.records, word_of(kind), std::string(word_of(kind)) + "s") + ", " +
             format_bytes(tally.bytes));
  }
  line("in use", number(report.current_records, "record", "records") + " and " +
                     number(report.parts_of_current, "part", "parts"));
  line("not in use", std::to_string(report.replaced_records) + " replaced, " +
                         std::to_string(report.removed_records) + " removed");
  if (report.incomplete_objects > 0)
    line("", number(report.incomplete_objects, "large object", "large objects") +
                 " that lost a part, as to reclaim");
  if (report.dropped_records > 0)
    line("", number(report.dropped_records, "damaged record", "damaged records") +
                 " that an earlier start took out");
  if (report.torn_tail_bytes > 0)
    line("torn tail",
         number(report.torn_tail_bytes, "byte", "bytes") + " that an unclean stop left: no damage");
  for (const DamagedPlace& place : report.damaged) line("damaged", describe(place));
  if (report.damaged_count > report.damaged.size())
    line("", "and " + std::to_string(report.damaged_count - report.damaged.size()) + " more");
  std::array<char, 32> rate{};
  std::snprintf(rate.data(), rate.size(), "%.0f MB/s", megabytes_a_second(report, elapsed));
  line("read", format_bytes(report.bytes_read) + " at " + rate.data());
  line("verdict", verdict(report));
  return text;
}

std::string to_json(const VerifyReport& report, Elapsed elapsed) {
  json::object kinds;
  for (const RecordKind kind : kKinds) {
    const auto& tally = tally_of(report, kind);
    kinds[word_of(kind)] = {{"records", tally.records}, {"bytes", tally.bytes}};
  }
  json::array damaged;
  for (const DamagedPlace& place : report.damaged) damaged.push_back(to_object(place));
  json::object object{
      {"clean", report.is_clean()},
      {"segments",
       {{"sealed", report.sealed_segments},
        {"unsealed", report.unsealed_segments},
        {"other_seed", report.other_seed_segments},
        {"older_version", report.older_segments},
        {"newer_version", report.newer_segments},
        {"unknown", report.unknown_segments}}},
      {"other_files", json::array(report.other_names.begin(), report.other_names.end())},
      {"other_files_count", report.other_files},
      {"records", std::move(kinds)},
      {"in_use", {{"records", report.current_records}, {"parts", report.parts_of_current}}},
      {"replaced", report.replaced_records},
      {"removed", report.removed_records},
      {"incomplete", report.incomplete_objects},
      {"dropped", report.dropped_records},
      {"torn_tail_bytes", report.torn_tail_bytes},
      {"damaged", std::move(damaged)},
      {"damaged_count", report.damaged_count},
      {"unreadable", report.is_unreadable},
      {"bytes_read", report.bytes_read},
      {"seconds", elapsed.count()}};
  return json::serialize(object) + "\n";
}

int run_verify(int count, const char* const* arguments, std::ostream& out, std::ostream& error) {
  const auto refuse = [&error](const std::string& reason) {
    error << "secondsight: " << reason << "\nTry \"secondsight verify --help\".\n";
    return kBadUsage;
  };
  const auto known = known_options();
  options::variables_map given;
  try {
    const options::positional_options_description no_positional;
    options::store(options::command_line_parser(count, arguments)
                       .options(known)
                       .positional(no_positional)
                       .run(),
                   given);
  } catch (const options::error& bad) {
    return refuse(bad.what());
  }
  if (given.count("help") > 0) {
    out << known;
    return 0;
  }
  if (given.count("config") == 0) return refuse("--config FILE is missing");
  const auto read = load_settings(given["config"].as<std::string>());
  if (const auto* faults = std::get_if<std::vector<Fault>>(&read)) {
    for (const Fault& fault : *faults) error << to_string(fault) << '\n';
    return kBadUsage;
  }
  const CacheSettings& cache = std::get<Settings>(read).cache;
  if (cache.disk_bytes == 0) return refuse("[cache] disk = \"0\": there is nothing on disk");
  return verify_directory(cache.directory, given.count("json") > 0, out, error);
}

}  // namespace secondsight::proxy
