#include "config/read_uncached.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

namespace secondsight {
namespace {

// Devices have blocks of at most a page, and so large a piece hides the cost of a call.
constexpr std::uint64_t kAlignment = 4096;
constexpr std::uint64_t kPieceBytes = 1U << 20;

class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const noexcept { return number_; }

 private:
  int number_;
};

boost::system::error_code last_error() noexcept {
  return {errno, boost::system::generic_category()};
}

/// As many of the bytes as there are before the end of the file.
Result<std::size_t> read_plainly(SystemCalls& calls, int descriptor, std::uint64_t offset,
                                 std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const iovec piece{out.data() + filled, out.size() - filled};
    const ssize_t n = calls.preadv2(descriptor, &piece, 1, static_cast<off_t>(offset + filled), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return last_error();
    if (n == 0) break;
    filled += static_cast<std::size_t>(n);
  }
  return filled;
}

/// The same through an aligned buffer, which O_DIRECT wants.
Result<std::size_t> read_directly(SystemCalls& calls, int descriptor, std::uint64_t offset,
                                  std::span<std::byte> out) {
  const std::uint64_t end = offset + out.size();
  const std::uint64_t first = offset / kAlignment * kAlignment;
  const std::uint64_t aligned_end = (end + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t buffer_bytes = std::min(kPieceBytes, aligned_end - first);
  const std::unique_ptr<void, void (*)(void*)> buffer(std::aligned_alloc(kAlignment, buffer_bytes),
                                                      &std::free);
  if (!buffer) return make_error_code(boost::system::errc::not_enough_memory);
  const std::span<std::byte> piece(static_cast<std::byte*>(buffer.get()), buffer_bytes);
  std::size_t filled = 0;
  for (std::uint64_t at = first; at < end; at += buffer_bytes) {
    const auto read =
        read_plainly(calls, descriptor, at,
                     piece.first(std::min<std::uint64_t>(buffer_bytes, aligned_end - at)));
    if (!read) return read;
    const std::uint64_t skip = offset > at ? offset - at : 0;
    if (*read <= skip) break;
    const std::size_t taken = std::min<std::size_t>(*read - skip, out.size() - filled);
    std::memcpy(out.data() + filled, piece.data() + skip, taken);
    filled += taken;
    if (*read < piece.size()) break;
  }
  return filled;
}

}  // namespace

Result<std::size_t> read_uncached(SystemCalls& calls, int descriptor, std::uint64_t offset,
                                  std::span<std::byte> out) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  const Descriptor direct(calls.openat(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC, 0));
  if (direct.number() >= 0) {
    auto read = read_directly(calls, direct.number(), offset, out);
    if (read || read.error() != boost::system::errc::invalid_argument) return read;
  }
  return read_plainly(calls, descriptor, offset, out);
}

}  // namespace secondsight
