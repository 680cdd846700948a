#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace secondsight::cache {

/// Why a response was, or was not, written to disk, and where a hit came from. One table gives the
/// metric's label, the access log's word and the `detail` of Cache-Status (RFC 9211 2.8).
enum class Detail : std::uint8_t {
  None,           // nothing to explain
  Repeat,         // admitted: sighted before within the window
  Always,         // admitted: the policy admits everything
  Memory,         // found in the memory tier; with `stored`: admitted for it, its second sighting
  Disk,           // found on disk
  FirstSighting,  // refused: sighted for the first time
  Never,          // refused: the policy admits nothing
  TooLarge,       // refused: above cache.max_object, or more than the disk can hold
  QueueFull,      // refused: the writer is behind
  DiskError,      // refused: the disk failed a moment ago
  NoDisk,         // refused: cache.disk is "0"
  Part,           // not decided on: part of an object, kept in memory
  Chance,         // admitted: drawn
  NotChosen,      // refused: not drawn
  FewSightings,   // refused: sighted before, but not as often as the policy asks for
};
inline constexpr std::size_t kDetailCount = 15;

constexpr std::string_view to_string(Detail d) noexcept {
  constexpr std::string_view kWords[kDetailCount] = {
      "",       "repeat",     "always",       "memory",     "disk",    "first-sighting",
      "never",  "too-large",  "queue-full",   "disk-error", "no-disk", "part",
      "chance", "not-chosen", "few-sightings"};
  return kWords[static_cast<std::size_t>(d)];
}

/// Whether the decision was to write.
constexpr bool is_admitted(Detail d) noexcept {
  return d == Detail::Repeat || d == Detail::Always || d == Detail::Memory || d == Detail::Chance;
}

}  // namespace secondsight::cache
