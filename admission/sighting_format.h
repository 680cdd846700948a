#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/clock.h"
#include "config/file_system.h"
#include "config/result.h"

namespace secondsight::admission {

// The bytes of the files in which sightings outlive a process: docs/on-disk-format.md, "Sightings".

/// Names a file of marks ("sightings-0000000007.marks") or of bits ("... .bits").
enum class SightingFile : std::uint8_t { Marks, Bits };
std::string sighting_file_name(SightingFile kind, std::uint64_t number);
/// The number in such a name; empty for every other name.
std::optional<std::uint64_t> number_of(SightingFile kind, std::string_view name) noexcept;

/// What a file of marks says first. A mark is Fingerprint::high, so it means the same to a filter
/// of any size, but only under the seed of that id.
struct MarksHeader {
  static constexpr std::size_t kBytes = 72;
  std::uint64_t seed_id = 0;
  std::uint64_t number = 0;               // the one in the file's name
  std::uint64_t generation = 0;           // the number of its generation's first file
  WallTime started{};                     // the generation
  std::uint64_t keys_per_generation = 0;  // of the filter that was marked; for who reads the file
  std::uint64_t line_count = 0;           // likewise

  std::array<std::byte, kBytes> encode() const noexcept;
  /// Errors: bad_message (damaged, or no such file), protocol_not_supported (a newer version).
  static Result<MarksHeader> decode(std::span<const std::byte> bytes);
};

/// Where a frame stands: what is valid at one place is valid at no other.
struct FramePlace {
  std::uint64_t seed_id = 0;
  std::uint64_t number = 0;
  std::uint64_t offset_bytes = 0;
};
inline constexpr std::size_t kFrameHeaderBytes = 24;
inline constexpr std::size_t kFrameMarksMax = 65'536;
constexpr std::uint64_t frame_bytes(std::size_t marks) noexcept {
  return kFrameHeaderBytes + marks * sizeof(std::uint64_t);
}

/// Appends the frame of 1 to kFrameMarksMax marks.
void encode_frame(const FramePlace& place, WallTime written, std::span<const std::uint64_t> marks,
                  std::vector<std::byte>& out);

/// What reading a file of marks came to.
struct MarksRead {
  MarksHeader header;
  std::uint64_t marks = 0;
  std::uint64_t end_bytes = 0;      // of the last whole frame: where the next one goes
  std::uint64_t damaged_bytes = 0;  // skipped between whole frames
  std::uint64_t torn_bytes = 0;     // behind the last one: a write that was cut off
  WallTime last_written{};          // of the last whole frame; the header's start if there is none
};
/// Errors: bad_message (no header of a file of that number, or of another seed),
/// protocol_not_supported, I/O.
Result<MarksHeader> read_marks_header(const File& file, std::uint64_t seed_id,
                                      std::uint64_t number);
/// Hands out the marks of every whole frame, in the order of writing, each time up to
/// kFrameMarksMax. Errors: those of read_marks_header().
Result<MarksRead> read_marks(const File& file, std::uint64_t seed_id, std::uint64_t number,
                             const std::function<void(std::span<const std::uint64_t>)>& take);

}  // namespace secondsight::admission
