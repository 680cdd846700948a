#include "cache/disk_health.h"

#include <string>

#include "config/log.h"

namespace secondsight::cache {
namespace {

namespace errc = boost::system::errc;

constexpr std::uint32_t kDamaged = 1;
constexpr std::uint32_t kUnread = 2;

}  // namespace

std::string_view to_string(DiskTrouble trouble) noexcept {
  constexpr std::string_view kWords[kDiskTroubleCount] = {
      "no-space",      "read-only",  "gone",       "busy", "held",
      "newer-version", "other-seed", "permission", "io"};
  return kWords[static_cast<std::size_t>(trouble)];
}

DiskTrouble trouble_of(const boost::system::error_code& error) noexcept {
  if (error == errc::no_space_on_device) return DiskTrouble::NoSpace;
  if (error == errc::read_only_file_system) return DiskTrouble::ReadOnly;
  if (error == errc::no_such_file_or_directory || error == errc::not_a_directory ||
      error == errc::not_connected)
    return DiskTrouble::Gone;
  if (error == errc::device_or_resource_busy) return DiskTrouble::Busy;
  if (error == errc::not_supported) return DiskTrouble::NewerVersion;
  if (error == errc::file_exists || error == errc::bad_message) return DiskTrouble::OtherSeed;
  if (error == errc::permission_denied || error == errc::operation_not_permitted)
    return DiskTrouble::Permission;
  return DiskTrouble::Io;
}

namespace {

/// Where the system's own words would say too little.
std::string explain(DiskTrouble trouble, const boost::system::error_code& error) {
  switch (trouble) {
    case DiskTrouble::Busy:
      return "another process uses it";
    case DiskTrouble::NewerVersion:
      return "written by a newer version";
    case DiskTrouble::OtherSeed:
      return error == errc::bad_message
                 ? "its file \"seed\" is damaged; removing that empties the cache"
                 : "it holds the cache of another seed; a restart uses it";
    default:
      return error.message();
  }
}

}  // namespace

DiskHealth::DiskHealth(Metrics& metrics) {
  for (std::size_t i = 0; i < kDiskTroubleCount; ++i) {
    const auto trouble = static_cast<DiskTrouble>(i);
    counts_[i] =
        &metrics.counter("secondsight_disk_errors_total", "Failures of the disk cache, by kind.",
                         {{"kind", std::string(to_string(trouble))}});
  }
}

void DiskHealth::note_failure(std::string_view doing, const boost::system::error_code& error) {
  const DiskTrouble trouble = trouble_of(error);
  note_failure(doing, trouble, explain(trouble, error));
}

void DiskHealth::note_failure(std::string_view doing, DiskTrouble trouble, std::string_view error) {
  count(trouble).add();
  is_up_.store(false, std::memory_order_relaxed);
  const std::uint32_t kind = 1U << static_cast<unsigned>(trouble);
  if ((logged_.fetch_or(kind, std::memory_order_relaxed) & kind) != 0) return;
  const std::string message =
      "cannot " + std::string(doing) + "; serving from memory and origin, and trying it again";
  log_line(LogLevel::Error, message, {{"kind", to_string(trouble)}, {"error", error}});
}

void DiskHealth::recover() noexcept {
  if (is_up_.exchange(true, std::memory_order_relaxed)) return;
  logged_.store(0, std::memory_order_relaxed);
  log_line(LogLevel::Info, "the disk cache works again");
}

bool DiskHealth::note_unreadable(const boost::system::error_code& error) noexcept {
  const bool is_damaged = error == errc::bad_message;
  if (!is_damaged) count(trouble_of(error)).add();
  const std::uint32_t kind = is_damaged ? kDamaged : kUnread;
  unreadable_.fetch_or(kind, std::memory_order_relaxed);
  return (unreadable_logged_.fetch_or(kind, std::memory_order_relaxed) & kind) == 0;
}

void DiskHealth::tick() noexcept {
  unreadable_logged_.fetch_and(unreadable_.exchange(0, std::memory_order_relaxed),
                               std::memory_order_relaxed);
}

}  // namespace secondsight::cache
