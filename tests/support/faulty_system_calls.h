#pragma once
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

#include "config/system_calls.h"

namespace secondsight::test {

/// The kernel's calls, troubled: every other call is interrupted first, and reads and writes move a
/// few bytes each time. One chosen call of a kind fails. Thread-safe, but for fail().
class FaultySystemCalls final : public SystemCalls {
 public:
  enum class Kind : std::uint8_t { Read, Write, Sync, Reserve, Open };
  enum class Pace : std::uint8_t { Normal, Troubled };
  explicit FaultySystemCalls(Pace pace) noexcept : is_troubled_(pace == Pace::Troubled) {}

  /// That call of the kind, counted from 0 from here on, fails with this errno.
  void fail(Kind kind, std::uint64_t call, int number) {
    calls_ = 0;
    kind_ = kind;
    call_ = call;
    number_ = number;
  }
  bool has_failed() const noexcept { return calls_.load() > call_; }
  std::uint64_t interruptions() const noexcept { return interruptions_.load(); }

  int openat(int directory, const char* path, int flags, mode_t mode) override {
    if (trouble(Kind::Open)) return -1;
    return SystemCalls::openat(directory, path, flags, mode);
  }
  int unlinkat(int directory, const char* path) override {
    return interrupted() ? -1 : SystemCalls::unlinkat(directory, path);
  }
  int flock(int descriptor, int operation) override {
    return interrupted() ? -1 : SystemCalls::flock(descriptor, operation);
  }
  int fsync(int descriptor) override {
    return trouble(Kind::Sync) ? -1 : SystemCalls::fsync(descriptor);
  }
  int fdatasync(int descriptor) override {
    return trouble(Kind::Sync) ? -1 : SystemCalls::fdatasync(descriptor);
  }
  int fallocate(int descriptor, off_t size) override {
    return trouble(Kind::Reserve) ? -1 : SystemCalls::fallocate(descriptor, size);
  }
  ssize_t preadv2(int descriptor, const iovec* pieces, int count, off_t offset,
                  int flags) override {
    if (trouble(Kind::Read)) return -1;
    const iovec some = shortened(pieces[0]);
    return is_troubled_ ? SystemCalls::preadv2(descriptor, &some, 1, offset, flags)
                        : SystemCalls::preadv2(descriptor, pieces, count, offset, flags);
  }
  ssize_t pwritev(int descriptor, const iovec* pieces, int count, off_t offset) override {
    if (trouble(Kind::Write)) return -1;
    const iovec some = shortened(pieces[0]);
    return is_troubled_ && some.iov_len > 0
               ? SystemCalls::pwritev(descriptor, &some, 1, offset)
               : SystemCalls::pwritev(descriptor, pieces, count, offset);
  }

 private:
  static constexpr std::size_t kShortMax = 4093;  // at odds with pages, sectors and blocks

  iovec shortened(const iovec& piece) {
    return {piece.iov_base, std::min(piece.iov_len, 1 + (lengths_++ * 1'031) % kShortMax)};
  }
  bool interrupted() {
    if (!is_troubled_ || interruptions_turn_++ % 2 != 0) return false;
    ++interruptions_;
    errno = EINTR;
    return true;
  }
  bool trouble(Kind kind) {
    if (interrupted()) return true;
    if (kind != kind_ || calls_++ != call_) return false;
    errno = number_;
    return true;
  }

  const bool is_troubled_;
  std::atomic<std::uint64_t> interruptions_turn_{0}, interruptions_{0}, lengths_{0}, calls_{0};
  Kind kind_ = Kind::Read;
  std::uint64_t call_ = UINT64_MAX;
  int number_ = 0;
};

}  // namespace secondsight::test
