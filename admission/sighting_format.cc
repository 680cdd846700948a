#include "admission/sighting_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "config/check.h"
#include "config/encoding.h"

namespace secondsight::admission {
namespace {

namespace errc = boost::system::errc;

constexpr std::string_view kMarksMagic = "2nd-mark";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kFrameMagic = 0x6B72'616D;  // "mark"
constexpr std::size_t kMarkBytes = sizeof(std::uint64_t);
constexpr std::size_t kNumberDigits = 10;
constexpr std::string_view kPrefix = "sightings-";
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;  // read at once; more than two frames

std::string_view suffix_of(SightingFile kind) noexcept {
  return kind == SightingFile::Marks ? ".marks" : ".bits";
}

// Of a frame: all behind the checksum, which stands first.
std::uint64_t checksum_of(const FramePlace& place, std::span<const std::byte> frame) noexcept {
  const auto rest = frame.subspan(sizeof(std::uint64_t));
  return XXH3_64bits_withSeed(rest.data(), rest.size(),
                              place.seed_id + (place.number << 40U) + place.offset_bytes);
}

/// The whole frame at the front of `bytes`; empty if there is none.
std::span<const std::byte> frame_at_front(const FramePlace& place,
                                          std::span<const std::byte> bytes) noexcept {
  if (bytes.size() < frame_bytes(1)) return {};
  if (load_little_endian<std::uint32_t>(bytes.data() + 8) != kFrameMagic) return {};
  const auto count = load_little_endian<std::uint32_t>(bytes.data() + 12);
  if (count == 0 || count > kFrameMarksMax || frame_bytes(count) > bytes.size()) return {};
  const auto frame = bytes.first(frame_bytes(count));
  if (load_little_endian<std::uint64_t>(frame.data()) != checksum_of(place, frame)) return {};
  return frame;
}

/// A stretch of a file in memory that moves on.
class Window {
 public:
  explicit Window(const File& file, std::uint64_t offset) : file_(file), offset_(offset) {}

  std::uint64_t offset() const noexcept { return offset_; }
  std::span<const std::byte> bytes() const noexcept {
    return std::span(buffer_).subspan(start_, size_ - start_);
  }
  void skip(std::size_t bytes) noexcept {
    start_ += bytes;
    offset_ += bytes;
  }
  /// Makes sure that the largest frame would be there whole, or all that the file has.
  Result<> fill() {
    if (at_end_ || size_ - start_ >= frame_bytes(kFrameMarksMax)) return {};
    std::memmove(buffer_.data(), buffer_.data() + start_, size_ - start_);
    size_ -= start_;
    start_ = 0;
    const auto got =
        file_.read_at(offset_ + size_, std::span(buffer_).subspan(size_), ReadMode::Blocking);
    if (!got) return got.error();
    at_end_ = *got < buffer_.size() - size_;
    size_ += *got;
    return {};
  }

 private:
  const File& file_;
  std::uint64_t offset_;  // of the first byte in bytes()
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kPieceBytes);
  std::size_t start_ = 0;
  std::size_t size_ = 0;
  bool at_end_ = false;
};

}  // namespace

std::string sighting_file_name(SightingFile kind, std::uint64_t number) {
  std::string digits = std::to_string(number);
  digits.insert(0, kNumberDigits - std::min(kNumberDigits, digits.size()), '0');
  return std::string(kPrefix) + digits + std::string(suffix_of(kind));
}

std::optional<std::uint64_t> number_of(SightingFile kind, std::string_view name) noexcept {
  const std::string_view suffix = suffix_of(kind);
  if (!name.starts_with(kPrefix) || !name.ends_with(suffix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(suffix.size());
  std::uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data(), end, number);
  if (error != std::errc() || stopped != end || name.size() < kNumberDigits) return std::nullopt;
  return number;
}

std::array<std::byte, MarksHeader::kBytes> MarksHeader::encode() const noexcept {
  std::array<std::byte, kBytes> bytes{};
  std::memcpy(bytes.data(), kMarksMagic.data(), kMarksMagic.size());
  store_little_endian(bytes.data() + 8, kVersion);
  store_little_endian(bytes.data() + 16, seed_id);
  store_little_endian(bytes.data() + 24, number);
  store_little_endian(bytes.data() + 32, generation);
  store_little_endian(bytes.data() + 40,
                      static_cast<std::uint64_t>(started.time_since_epoch().count()));
  store_little_endian(bytes.data() + 48, keys_per_generation);
  store_little_endian(bytes.data() + 56, line_count);
  store_little_endian(bytes.data() + 64, std::uint64_t{XXH3_64bits(bytes.data(), 64)});
  return bytes;
}

Result<MarksHeader> MarksHeader::decode(std::span<const std::byte> bytes) {
  if (bytes.size() < kBytes ||
      std::memcmp(bytes.data(), kMarksMagic.data(), kMarksMagic.size()) != 0)
    return make_error_code(errc::bad_message);
  if (load_little_endian<std::uint32_t>(bytes.data() + 8) > kVersion)
    return make_error_code(errc::protocol_not_supported);
  const auto number_at = [&](std::size_t at) {
    return load_little_endian<std::uint64_t>(bytes.data() + at);
  };
  MarksHeader header;
  header.seed_id = number_at(16);
  header.number = number_at(24);
  header.generation = number_at(32);
  header.started = WallTime(std::chrono::milliseconds(static_cast<std::int64_t>(number_at(40))));
  header.keys_per_generation = number_at(48);
  header.line_count = number_at(56);
  // Whole exactly if it would be written like this: magic, version and checksum in one comparison.
  const auto again = header.encode();
  if (!std::equal(again.begin(), again.end(), bytes.begin()))
    return make_error_code(errc::bad_message);
  return header;
}

void encode_frame(const FramePlace& place, WallTime written, std::span<const std::uint64_t> marks,
                  std::vector<std::byte>& out) {
  CHECK(!marks.empty() && marks.size() <= kFrameMarksMax);
  const std::size_t at = out.size();
  out.resize(at + frame_bytes(marks.size()));
  std::byte* const frame = out.data() + at;
  store_little_endian(frame + 8, kFrameMagic);
  store_little_endian(frame + 12, static_cast<std::uint32_t>(marks.size()));
  store_little_endian(frame + 16, static_cast<std::uint64_t>(written.time_since_epoch().count()));
  for (std::size_t i = 0; i < marks.size(); ++i)
    store_little_endian(frame + kFrameHeaderBytes + i * kMarkBytes, marks[i]);
  store_little_endian(frame, checksum_of(place, std::span(out).subspan(at)));
}

Result<MarksHeader> read_marks_header(const File& file, std::uint64_t seed_id,
                                      std::uint64_t number) {
  std::array<std::byte, MarksHeader::kBytes> front{};
  const auto got = file.read_at(0, front, ReadMode::Blocking);
  if (!got) return got.error();
  const auto header = MarksHeader::decode(std::span(front).first(*got));
  if (header && (header->seed_id != seed_id || header->number != number))
    return make_error_code(errc::bad_message);
  return header;
}

Result<MarksRead> read_marks(const File& file, std::uint64_t seed_id, std::uint64_t number,
                             const std::function<void(std::span<const std::uint64_t>)>& take) {
  const auto header = read_marks_header(file, seed_id, number);
  if (!header) return header.error();
  MarksRead read;
  read.header = *header;
  read.end_bytes = MarksHeader::kBytes;
  read.last_written = header->started;
  std::vector<std::uint64_t> marks;
  Window window(file, MarksHeader::kBytes);
  while (true) {
    if (const auto filled = window.fill(); !filled) return filled.error();
    const auto frame = frame_at_front({seed_id, number, window.offset()}, window.bytes());
    if (frame.empty()) {
      if (window.bytes().size() <= kMarkBytes) break;
      window.skip(kMarkBytes);  // frames are whole multiples of a mark: the next may begin there
      continue;
    }
    read.damaged_bytes += window.offset() - read.end_bytes;
    marks.resize((frame.size() - kFrameHeaderBytes) / kMarkBytes);
    for (std::size_t i = 0; i < marks.size(); ++i)
      marks[i] =
          load_little_endian<std::uint64_t>(frame.data() + kFrameHeaderBytes + i * kMarkBytes);
    read.last_written = WallTime(std::chrono::milliseconds(
        static_cast<std::int64_t>(load_little_endian<std::uint64_t>(frame.data() + 16))));
    read.marks += marks.size();
    window.skip(frame.size());
    read.end_bytes = window.offset();
    take(marks);
  }
  read.torn_bytes = window.offset() + window.bytes().size() - read.end_bytes;
  return read;
}

}  // namespace secondsight::admission
