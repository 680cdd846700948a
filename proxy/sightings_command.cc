#include "proxy/sightings_command.h"

#include <array>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <boost/program_options.hpp>

#include "admission/admission_policy.h"
#include "admission/sighting_snapshot.h"
#include "admission/two_generation_filter.h"
#include "config/clock.h"
#include "config/posix_file_system.h"
#include "config/settings.h"
#include "config/units.h"
#include "proxy/authority.h"
#include "proxy/import_target.h"
#include "proxy/log_merge.h"
#include "proxy/log_sightings.h"
#include "proxy/settings_report.h"
#include "proxy/sighting_export.h"

namespace secondsight::proxy {
namespace {

namespace options = boost::program_options;
namespace errc = boost::system::errc;
using admission::AdmissionPolicy;
using admission::Snapshot;
using admission::TwoGenerationFilter;

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;

/// Ends a command with a line for the operator.
struct Failure {
  int exit_code;
  std::string reason;  // empty: told already
};

Failure bad_usage(std::string reason) {
  return {kBadUsage, std::move(reason) + "\nTry \"secondsight sightings --help\"."};
}

options::options_description known_options() {
  options::options_description known(
      "usage: secondsight sightings export --config FILE [--out FILE] [--force]\n"
      "       secondsight sightings import --config FILE [--host NAME] [--admin ADDRESS] "
      "WHAT...\n\n"
      "export writes what the proxy on the cache directory remembers of first sightings, running "
      "or "
      "not.\n"
      "import adds to it: WHAT is such a snapshot, or an access log (Common, Combined, JSON; plain "
      "or\n"
      "gzip; - for standard input). Exit code: 0 when done, 1 when it failed or was refused.\n\n"
      "options");
  known.add_options()("config", options::value<std::string>()->value_name("FILE"),
                      "the proxy's configuration")(
      "out", options::value<std::string>()->default_value("sightings.bits")->value_name("FILE"),
      "export: the file to write")("force", "export: replace a file that is there")(
      "host", options::value<std::string>()->value_name("NAME"),
      "import: the host of logged requests whose lines name none")(
      "admin", options::value<std::string>()->value_name("ADDRESS"),
      "import: the running proxy's admin listener, if not as configured")("help",
                                                                          "print this and exit");
  return known;
}

/// With what has no name on the command line as "what": the verb first.
options::variables_map parse(int count, const char* const* arguments,
                             const options::options_description& known) {
  options::options_description all;
  all.add(known).add_options()("what", options::value<std::vector<std::string>>());
  options::positional_options_description positional;
  positional.add("what", -1);
  options::variables_map given;
  options::store(
      options::command_line_parser(count, arguments).options(all).positional(positional).run(),
      given);
  return given;
}

std::optional<std::string> text_of(const options::variables_map& given, const char* name) {
  if (given.count(name) == 0) return std::nullopt;
  return given[name].as<std::string>();
}

std::string number(std::uint64_t n, std::string_view one, std::string_view many) {
  return std::to_string(n) + " " + std::string(n == 1 ? one : many);
}

/// The settings, if the proxy that they describe keeps sightings.
std::variant<Settings, Failure> load(const options::variables_map& given, std::ostream& error) {
  const auto path = text_of(given, "config");
  if (!path) return bad_usage("--config FILE is missing");
  auto read = load_settings(*path);
  if (const auto* faults = std::get_if<std::vector<Fault>>(&read)) {
    for (const Fault& fault : *faults) error << to_string(fault) << '\n';
    return Failure{kBadUsage, {}};
  }
  auto& settings = std::get<Settings>(read);
  if (const auto bad = find_bad_filter_setting(settings.admission)) {
    error << to_string(fault_at(*path, bad->key, bad->reason)) << '\n';
    return Failure{kBadUsage, {}};
  }
  if (settings.cache.disk_bytes == 0)
    return bad_usage("[cache] disk = \"0\": sightings are kept on disk only");
  return std::move(settings);
}

/// An empty filter as the settings want it.
std::variant<std::unique_ptr<AdmissionPolicy>, Failure> make_filter(const Settings& settings,
                                                                    const Clock& clock) {
  try {
    auto policy = admission::make_policy(settings.admission, clock.steady());
    if (policy->filter() != nullptr) return policy;
    return bad_usage("[admission] policy = \"" + std::string(to_string(settings.admission.policy)) +
                     "\": it keeps no sightings that could be written down");
  } catch (const std::bad_alloc&) {
    return Failure{
        kFailed, "[admission] expected_keys = " + std::to_string(settings.admission.expected_keys) +
                     " needs more memory than there is"};
  }
}

// ---------------------------------------------------------------- export

std::optional<Failure> run_export(const options::variables_map& given, std::ostream& out,
                                  std::ostream& error) {
  for (const char* name : {"host", "admin"})
    if (given.count(name) > 0) return bad_usage("--" + std::string(name) + " is of import");
  auto loaded = load(given, error);
  if (auto* failure = std::get_if<Failure>(&loaded)) return std::move(*failure);
  const auto& settings = std::get<Settings>(loaded);
  const SystemClock clock;
  const auto made = make_filter(settings, clock);
  if (const auto* failure = std::get_if<Failure>(&made)) return *failure;
  TwoGenerationFilter& filter = *std::get<std::unique_ptr<AdmissionPolicy>>(made)->filter();

  const auto remembered = remember(settings, filter, clock);
  if (!remembered) {
    const bool is_unused = remembered.error() == errc::no_such_file_or_directory;
    return Failure{kFailed,
                   "[cache] directory = \"" + settings.cache.directory + "\": " +
                       (is_unused ? "no proxy has used it yet" : remembered.error().message())};
  }
  const auto& restored = remembered->restored;
  for (const std::string& skipped : restored.skipped)
    error << "secondsight: skipped " << skipped << '\n';
  if (restored.damaged_bytes > 0)
    error << "secondsight: skipped " << restored.damaged_bytes << " damaged bytes\n";

  const std::string path = given["out"].as<std::string>();
  const Overwrite overwrite = given.count("force") > 0 ? Overwrite::Replace : Overwrite::Never;
  const auto written =
      write_snapshot_file(path, overwrite, filter, remembered->seed_id, clock.wall());
  if (!written) {
    const bool is_there = written.error() == errc::file_exists;
    return Failure{kFailed, path + ": " +
                                (is_there ? "it is there already; --force replaces it"
                                          : written.error().message())};
  }
  out << path << ": " << number(restored.marks, "sighting", "sightings")
      << (restored.has_bits ? " and what was imported" : "");
  if (restored.marks > 0 && restored.last_mark_age) {
    const auto age = std::chrono::floor<std::chrono::seconds>(*restored.last_mark_age);
    out << ", the latest " << format_duration(age) << " old";
  }
  out << '\n';
  return std::nullopt;
}

// ---------------------------------------------------------------- import

/// What is to be imported: snapshots are known by how they begin, all else is a log.
struct Sources {
  struct OfSnapshot {
    std::string path;
    std::unique_ptr<File> file;
    Snapshot::Header header;
  };
  std::vector<OfSnapshot> snapshots;
  LogMerge logs;
};

std::variant<Sources, Failure> open_sources(const std::vector<std::string>& paths) {
  Sources sources;
  for (const std::string& path : paths) {
    const auto fail = [&path](const std::string& reason) {
      return Failure{kFailed, path + ": " + reason};
    };
    std::error_code ignored;  // opening tells
    if (std::filesystem::is_regular_file(path, ignored)) {
      auto file = open_file(path);
      if (!file) return fail(file.error().message());
      if (admission::is_snapshot(**file)) {
        const auto header = admission::read_snapshot_header(**file);
        if (!header) return fail(explain_unreadable(header.error()));
        sources.snapshots.push_back({path, std::move(*file), *header});
        continue;
      }
    }
    if (const auto opened = sources.logs.open(path); !opened) return fail(opened.error().message());
  }
  return sources;
}

/// Tells what came of it; whether that is good enough.
bool tell(const std::string& what, const SnapshotImport& import, std::ostream& out,
          std::ostream& error) {
  if (is_refused(import)) {
    error << "secondsight: " << what << " is refused: " << import.reason << '\n';
    return false;
  }
  if (import.new_bits == 0)
    out << what << ": nothing in it was new\n";
  else
    out << what << ": merged " << number(import.merged, "generation", "generations") << ", "
        << number(import.new_bits, "new bit", "new bits") << '\n';
  if (import.refused > 0)
    error << "secondsight: " << what << ": not all is merged: " << import.reason << '\n';
  else if (!import.reason.empty())
    error << "secondsight: " << what << ": " << import.reason << '\n';
  return import.is_kept;
}

Result<> copy(const File& from, File& to) {
  std::vector<std::byte> piece(std::size_t{1} << 20U);
  for (std::uint64_t offset = 0;; offset += piece.size()) {
    const auto got = from.read_at(offset, piece, ReadMode::Blocking);
    if (!got) return got.error();
    const std::array<std::span<const std::byte>, 1> pieces{std::span(piece).first(*got)};
    if (auto written = to.write_at(offset, pieces); !written) return written;
    if (*got < piece.size()) return {};
  }
}

bool import_one(const Sources::OfSnapshot& source, ImportTarget& target,
                const TwoGenerationFilter& filter, std::ostream& out, std::ostream& error) {
  // Before a large file is read for nothing.
  if (auto misfit = explain_misfit(source.header, target.seed().id(), filter.size()))
    return tell(source.path, refuse_import(std::move(*misfit)), out, error);
  {
    const auto snapshot = admission::read_snapshot(*source.file);
    if (!snapshot)
      return tell(source.path, refuse_import(explain_unreadable(snapshot.error())), out, error);
    if (snapshot->damaged_bytes > 0)
      error << "secondsight: " << source.path << ": " << snapshot->damaged_bytes
            << " damaged bytes are left out\n";
  }
  return tell(source.path, target.take([&](File& to) { return copy(*source.file, to); }), out,
              error);
}

/// Whether anything of the logs could be used.
bool tell_logs(const LogMerge& logs, std::ostream& out, std::ostream& error) {
  bool is_any_usable = false;
  for (const LogMerge::Log& log : logs.logs()) {
    const LogFaults& faults = log.reader->faults();
    out << log.path << ": " << number(faults.lines, "line", "lines");
    if (faults.bad_lines > 0) out << ", " << faults.bad_lines << " of them not used";
    out << '\n';
    for (const std::string& example : faults.examples) error << "  " << example << '\n';
    if (faults.is_damaged)
      error << "secondsight: " << log.path << ": damaged or cut off behind line " << faults.lines
            << '\n';
    is_any_usable = is_any_usable || (faults.bad_lines + faults.empty_lines < faults.lines) ||
                    (faults.bad_lines == 0 && !faults.is_damaged);
  }
  return is_any_usable;
}

bool import_logs(LogMerge& logs, const Settings& settings, const std::string& host,
                 ImportTarget& target, const Clock& clock, std::ostream& out, std::ostream& error) {
  const auto made = make_filter(settings, clock);
  if (const auto* failure = std::get_if<Failure>(&made)) {
    error << "secondsight: " << failure->reason << '\n';
    return false;
  }
  TwoGenerationFilter& filter = *std::get<std::unique_ptr<AdmissionPolicy>>(made)->filter();
  const WallTime now = clock.wall();
  LogSightings sightings(settings, target.seed(), filter, host, now);
  logs.run(sightings);
  sightings.finish();
  if (!tell_logs(logs, out, error)) {
    error << "secondsight: nothing to import: no line could be used\n";
    return false;
  }
  const std::string what = number(sightings.sightings(), "logged sighting", "logged sightings");
  if (sightings.sightings() == 0) {
    out << what << ": nothing to import\n";
    return true;
  }
  const auto write = [&](File& to) {
    return admission::write_snapshot(to, filter, admission::SnapshotOf::Both, target.seed().id(),
                                     now);
  };
  return tell(what, target.take(write), out, error);
}

std::optional<Failure> run_import(const options::variables_map& given, std::ostream& out,
                                  std::ostream& error) {
  auto what = given["what"].as<std::vector<std::string>>();
  what.erase(what.begin());  // the verb
  if (what.empty()) return bad_usage("import what? A snapshot, or access logs");
  if (given.count("force") > 0 || !given["out"].defaulted())
    return bad_usage("--out and --force are of export");
  std::string host;
  if (const auto name = text_of(given, "host"); name && !normalize_authority(*name, host))
    return bad_usage("--host " + *name + " is no host such as www.example.com");
  auto loaded = load(given, error);
  if (auto* failure = std::get_if<Failure>(&loaded)) return std::move(*failure);
  const auto& settings = std::get<Settings>(loaded);
  auto opened = open_sources(what);
  if (auto* failure = std::get_if<Failure>(&opened)) return std::move(*failure);
  auto& sources = std::get<Sources>(opened);

  const SystemClock clock;
  const auto made = make_filter(settings, clock);
  if (const auto* failure = std::get_if<Failure>(&made)) return *failure;
  TwoGenerationFilter& filter = *std::get<std::unique_ptr<AdmissionPolicy>>(made)->filter();
  const auto make_seed =
      sources.snapshots.empty() ? ImportTarget::MakeSeed::Yes : ImportTarget::MakeSeed::No;
  auto found = ImportTarget::open(settings, text_of(given, "admin"), make_seed, filter, clock);
  if (const auto* none = std::get_if<ImportTarget::None>(&found)) {
    return Failure{kFailed, "cannot import into [cache] directory = \"" + settings.cache.directory +
                                "\": " + none->reason};
  }
  ImportTarget& target = *std::get<std::unique_ptr<ImportTarget>>(found);
  for (const std::string& skipped : target.skipped())
    error << "secondsight: skipped " << skipped << '\n';

  bool is_good = true;
  for (const auto& source : sources.snapshots)
    is_good = import_one(source, target, filter, out, error) && is_good;
  if (!sources.logs.logs().empty())
    is_good = import_logs(sources.logs, settings, host, target, clock, out, error) && is_good;
  if (!is_good) return Failure{kFailed, {}};
  return std::nullopt;
}

}  // namespace

int run_sightings(int count, const char* const* arguments, std::ostream& out, std::ostream& error) {
  const auto known = known_options();
  const auto run = [&]() -> std::optional<Failure> {
    options::variables_map given;
    try {
      given = parse(count, arguments, known);
    } catch (const options::error& bad) {
      return bad_usage(bad.what());
    }
    if (given.count("help") > 0) {
      out << known;
      return std::nullopt;
    }
    if (given.count("what") == 0) return bad_usage("sightings needs export or import");
    const auto& what = given["what"].as<std::vector<std::string>>();
    if (what.front() == "import") return run_import(given, out, error);
    if (what.front() != "export")
      return bad_usage("sightings: neither export nor import: \"" + what.front() + "\"");
    if (what.size() > 1) return bad_usage("export writes one file: --out says which");
    return run_export(given, out, error);
  };
  const auto failure = run();
  if (failure && !failure->reason.empty()) error << "secondsight: " << failure->reason << '\n';
  if (!out.flush()) return kFailed;
  return failure ? failure->exit_code : 0;
}

}  // namespace secondsight::proxy
