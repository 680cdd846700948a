#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/result.h"

namespace secondsight {

enum class ReadMode : std::uint8_t {
  Blocking,
  PageCacheOnly,  // errc::resource_unavailable_try_again when a device access would be needed
  Uncached,       // blocking, from the device itself where the file system can: the page cache
                  // neither answers nor keeps what was read
};

/// One file. Offsets and sizes are bytes. read_at and write_at move all bytes or fail, except that
/// a read past the end returns fewer. Reads are thread-safe; the rest needs one writer.
class File {
 public:
  virtual ~File() = default;
  virtual Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                                      ReadMode mode) const = 0;
  /// Gather: the pieces go one after the other from `offset` on.
  virtual Result<> write_at(std::uint64_t offset,
                            std::span<const std::span<const std::byte>> pieces) = 0;
  /// Reserves space up to `size_bytes` so that later writes within cannot run out of it; where the
  /// file system cannot, it does nothing. Errors: no_space_on_device.
  virtual Result<> reserve(std::uint64_t size_bytes) = 0;
  /// After an error the unsynced bytes are in an unknown state and a second sync proves nothing:
  /// the caller abandons the file.
  virtual Result<> sync() = 0;
  virtual Result<std::uint64_t> size() const = 0;
};

/// One flat directory: all of the operating system that the log is allowed to see.
class FileSystem {
 public:
  enum class Attached : std::uint8_t {
    Same,  // the directory of the last call
    Anew,  // it is not: the first, or another one in the place of one that is gone
  };
  virtual ~FileSystem() = default;
  /// Makes sure that the directory is there and ours alone, and looks whether it still is the one
  /// of the last call. Until the first success, and from a failure to the next success, all calls
  /// below fail; open files stay usable. Errors: device_or_resource_busy (another process has it),
  /// I/O.
  virtual Result<Attached> attach() { return Attached::Same; }
  virtual Result<std::unique_ptr<File>> create(std::string_view name) = 0;  // fails if it exists
  virtual Result<std::unique_ptr<File>> open(std::string_view name) = 0;
  virtual Result<std::vector<std::string>> list() const = 0;
  virtual Result<> remove(std::string_view name) = 0;
  virtual Result<> sync_directory() = 0;  // makes create and remove durable
};

}  // namespace secondsight
