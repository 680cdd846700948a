#pragma once
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/file_system.h"

namespace secondsight::test {

/// Where writes of a GatedFileSystem wait while it is closed, and where its changes fail.
/// Thread-safe.
class DiskGate {
 public:
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  void open() {
    const std::lock_guard lock(mutex_);
    closed_ = false;
    change_.notify_all();
  }
  /// Blocks until a write waits.
  void wait_for_writer() {
    std::unique_lock lock(mutex_);
    change_.wait(lock, [this] { return waiting_ > 0; });
  }

  /// How many changes came: whatever is neither a read nor a question.
  std::uint64_t changes() const {
    const std::lock_guard lock(mutex_);
    return changes_;
  }
  /// That change (counted from 0) fails with `error` and does nothing.
  void fail_change(std::uint64_t change, boost::system::errc::errc_t error) {
    const std::lock_guard lock(mutex_);
    failing_ = change;
    error_ = error;
  }

 private:
  friend class GatedFileSystem;
  Result<> begin_change() {
    const std::lock_guard lock(mutex_);
    if (changes_++ == failing_) return make_error_code(error_);
    return {};
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    change_.notify_all();
    change_.wait(lock, [this] { return !closed_; });
    --waiting_;
  }

  mutable std::mutex mutex_;
  std::condition_variable change_;
  bool closed_ = false;
  int waiting_ = 0;
  std::uint64_t changes_ = 0;
  std::optional<std::uint64_t> failing_;
  boost::system::errc::errc_t error_ = boost::system::errc::io_error;
};

/// Another file system whose writes stop while the gate is closed (a disk that hangs) and whose
/// changes fail as the gate was told. Reads pass.
class GatedFileSystem final : public FileSystem {
 public:
  GatedFileSystem(std::unique_ptr<FileSystem> disk, std::shared_ptr<DiskGate> gate)
      : disk_(std::move(disk)), gate_(std::move(gate)) {}

  Result<std::unique_ptr<File>> create(std::string_view name) override {
    if (const auto begun = gate_->begin_change(); !begun) return begun.error();
    return gated(disk_->create(name));
  }
  Result<std::unique_ptr<File>> open(std::string_view name) override {
    return gated(disk_->open(name));
  }
  Result<std::vector<std::string>> list() const override { return disk_->list(); }
  Result<> remove(std::string_view name) override {
    if (const auto begun = gate_->begin_change(); !begun) return begun.error();
    return disk_->remove(name);
  }
  Result<> sync_directory() override {
    if (const auto begun = gate_->begin_change(); !begun) return begun.error();
    return disk_->sync_directory();
  }

 private:
  using Bytes = std::span<const std::byte>;
  class GatedFile final : public File {
   public:
    GatedFile(std::unique_ptr<File> file, std::shared_ptr<DiskGate> gate)
        : file_(std::move(file)), gate_(std::move(gate)) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                                ReadMode mode) const override {
      return file_->read_at(offset, out, mode);
    }
    Result<> write_at(std::uint64_t offset, std::span<const Bytes> pieces) override {
      gate_->pass();
      if (const auto begun = gate_->begin_change(); !begun) return begun.error();
      return file_->write_at(offset, pieces);
    }
    Result<> reserve(std::uint64_t size_bytes) override {
      if (const auto begun = gate_->begin_change(); !begun) return begun.error();
      return file_->reserve(size_bytes);
    }
    Result<> sync() override {
      if (const auto begun = gate_->begin_change(); !begun) return begun.error();
      return file_->sync();
    }
    Result<std::uint64_t> size() const override { return file_->size(); }

   private:
    std::unique_ptr<File> file_;
    std::shared_ptr<DiskGate> gate_;
  };

  Result<std::unique_ptr<File>> gated(Result<std::unique_ptr<File>> file) {
    if (!file) return file.error();
    return std::unique_ptr<File>(std::make_unique<GatedFile>(std::move(*file), gate_));
  }

  std::unique_ptr<FileSystem> disk_;
  std::shared_ptr<DiskGate> gate_;
};

}  // namespace secondsight::test
