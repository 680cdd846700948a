#include "admission/sighting_snapshot.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "config/encoding.h"

namespace secondsight::admission {
namespace {

namespace errc = boost::system::errc;

constexpr std::string_view kMagic = "2nd-bits";
constexpr std::uint32_t kVersion = 1;
// 2048 lines and their checksum.
constexpr std::size_t kBlockWords = 8192;
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
constexpr std::size_t kBlockBytes = (kBlockWords + 1) * kWordBytes;

using HeaderBytes = std::array<std::byte, Snapshot::Header::kBytes>;

HeaderBytes encode(const Snapshot::Header& header) noexcept {
  HeaderBytes bytes{};
  std::memcpy(bytes.data(), kMagic.data(), kMagic.size());
  store_little_endian(bytes.data() + 8, kVersion);
  store_little_endian(bytes.data() + 12, header.generations);
  store_little_endian(bytes.data() + 16, header.seed_id);
  store_little_endian(bytes.data() + 24, header.line_count);
  store_little_endian(bytes.data() + 32, header.keys_per_generation);
  store_little_endian(bytes.data() + 40,
                      static_cast<std::uint64_t>(header.taken.time_since_epoch().count()));
  store_little_endian(bytes.data() + 56, std::uint64_t{XXH3_64bits(bytes.data(), 56)});
  return bytes;
}

std::uint64_t words_of(const Snapshot::Header& header) noexcept {
  return header.line_count * kWordsPerHalf;
}

std::uint64_t blocks_of(const Snapshot::Header& header) noexcept {
  return (words_of(header) + kBlockWords - 1) / kBlockWords;
}

std::uint64_t block_offset(const Snapshot::Header& header, std::uint32_t generation,
                           std::uint64_t block) noexcept {
  return Snapshot::Header::kBytes + (generation * blocks_of(header) + block) * kBlockBytes;
}

// Bound to its place, seed and size: a block of another snapshot is none of this one.
std::uint64_t checksum_of(const Snapshot::Header& header, std::uint64_t offset,
                          std::span<const std::byte> words) noexcept {
  return XXH3_64bits_withSeed(words.data(), words.size(),
                              header.seed_id + (header.line_count << 20U) + offset);
}

Result<> write_generation(File& file, const Snapshot::Header& header, std::uint32_t generation,
                          std::span<const std::uint64_t> words) {
  std::vector<std::byte> bytes(kBlockBytes);
  for (std::uint64_t block = 0; block < blocks_of(header); ++block) {
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    const auto of_block = words.subspan(block * kBlockWords);
    const std::size_t count = std::min(of_block.size(), kBlockWords);
    for (std::size_t i = 0; i < count; ++i)
      store_little_endian(bytes.data() + i * kWordBytes, of_block[i]);
    const std::uint64_t offset = block_offset(header, generation, block);
    constexpr std::size_t kChecksumAt = kBlockWords * kWordBytes;
    store_little_endian(bytes.data() + kChecksumAt,
                        checksum_of(header, offset, std::span(bytes).first(kChecksumAt)));
    const std::array<std::span<const std::byte>, 1> pieces{bytes};
    if (auto written = file.write_at(offset, pieces); !written) return written;
  }
  return {};
}

/// How many bytes were damaged.
Result<std::uint64_t> read_generation(const File& file, const Snapshot::Header& header,
                                      std::uint32_t generation, std::span<std::uint64_t> words) {
  std::vector<std::byte> bytes(kBlockBytes);
  std::uint64_t damaged_bytes = 0;
  for (std::uint64_t block = 0; block < blocks_of(header); ++block) {
    const std::uint64_t offset = block_offset(header, generation, block);
    const auto got = file.read_at(offset, bytes, ReadMode::Blocking);
    if (!got) return got.error();
    const auto payload = std::span<const std::byte>(bytes).first(kBlockWords * kWordBytes);
    if (*got < kBlockBytes || load_little_endian<std::uint64_t>(bytes.data() + payload.size()) !=
                                  checksum_of(header, offset, payload)) {
      damaged_bytes += kBlockBytes;
      continue;
    }
    const auto of_block = words.subspan(block * kBlockWords);
    for (std::size_t i = 0; i < std::min(of_block.size(), kBlockWords); ++i)
      of_block[i] = load_little_endian<std::uint64_t>(bytes.data() + i * kWordBytes);
  }
  return damaged_bytes;
}

}  // namespace

Result<> write_snapshot(File& file, const TwoGenerationFilter& filter, SnapshotOf which,
                        std::uint64_t seed_id, WallTime now) {
  Snapshot::Header header;
  header.seed_id = seed_id;
  header.line_count = filter.size().line_count;
  header.keys_per_generation = filter.size().keys_per_generation;
  header.taken = now;
  header.generations = which == SnapshotOf::Both ? 2 : 1;
  std::vector<std::uint64_t> words(filter.words_per_generation());
  for (std::uint32_t g = 0; g < header.generations; ++g) {
    const bool is_current = which == SnapshotOf::Both && g == 0;
    filter.copy_generation(is_current ? Generation::Current : Generation::Previous, words);
    if (auto written = write_generation(file, header, g, words); !written) return written;
  }
  if (auto synced = file.sync(); !synced) return synced;
  const HeaderBytes bytes = encode(header);
  const std::array<std::span<const std::byte>, 1> pieces{bytes};
  if (auto written = file.write_at(0, pieces); !written) return written;
  return file.sync();
}

bool is_snapshot(const File& file) {
  std::array<std::byte, kMagic.size()> front{};
  const auto got = file.read_at(0, front, ReadMode::Blocking);
  return got && *got == front.size() &&
         std::memcmp(front.data(), kMagic.data(), kMagic.size()) == 0;
}

Result<Snapshot::Header> read_snapshot_header(const File& file) {
  HeaderBytes bytes{};
  const auto got = file.read_at(0, bytes, ReadMode::Blocking);
  if (!got) return got.error();
  if (*got < bytes.size() || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return make_error_code(errc::bad_message);
  if (load_little_endian<std::uint32_t>(bytes.data() + 8) > kVersion)
    return make_error_code(errc::protocol_not_supported);
  Snapshot::Header header;
  header.generations = load_little_endian<std::uint32_t>(bytes.data() + 12);
  header.seed_id = load_little_endian<std::uint64_t>(bytes.data() + 16);
  header.line_count = load_little_endian<std::uint64_t>(bytes.data() + 24);
  header.keys_per_generation = load_little_endian<std::uint64_t>(bytes.data() + 32);
  header.taken = WallTime(std::chrono::milliseconds(
      static_cast<std::int64_t>(load_little_endian<std::uint64_t>(bytes.data() + 40))));
  if (encode(header) != bytes || header.generations < 1 || header.generations > 2)
    return make_error_code(errc::bad_message);
  return header;
}

Result<Snapshot> read_snapshot(const File& file) {
  const auto header = read_snapshot_header(file);
  if (!header) return header.error();
  const auto size = file.size();
  if (!size) return size.error();
  // Before memory is taken for what the header claims.
  if (header->line_count > *size / (kWordsPerHalf * kWordBytes))
    return make_error_code(errc::value_too_large);
  Snapshot snapshot;
  snapshot.header = *header;
  for (std::uint32_t g = 0; g < header->generations; ++g) {
    auto& words = snapshot.generations.emplace_back(words_of(*header));
    const auto damaged_bytes = read_generation(file, *header, g, words);
    if (!damaged_bytes) return damaged_bytes.error();
    snapshot.damaged_bytes += *damaged_bytes;
  }
  return snapshot;
}

}  // namespace secondsight::admission
