#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/file_system.h"
#include "tests/support/sim_file_system.h"

namespace secondsight::test {

/// A directory that comes and goes: it cannot be attached, or every change fails, until told
/// otherwise, and another disk may stand in its place. Files that are open stay with their disk.
/// Thread-safe, but for what is said between the writer's calls.
class TroubledFileSystem final : public FileSystem {
 public:
  using Error = boost::system::errc::errc_t;

  TroubledFileSystem()
      : disk_(std::make_shared<SimFileSystem>(1)), state_(std::make_shared<State>()) {}

  /// attach() fails so until heal().
  void fail_attach(Error error) { state_->set(&State::attach, error); }
  void allow_attach() { state_->set(&State::attach, std::nullopt); }
  /// Each change of the directory or a file does, and each reading of the directory.
  void fail_changes(Error error) { state_->set(&State::changes, error); }
  /// Each reading of a file.
  void fail_reads(Error error) { state_->set(&State::reads, error); }
  void heal() {
    for (const auto member : {&State::attach, &State::changes, &State::reads})
      state_->set(member, std::nullopt);
  }
  /// Another one is there from now on: a fresh one, or this.
  std::shared_ptr<SimFileSystem> replace(std::shared_ptr<SimFileSystem> by = nullptr) {
    const std::lock_guard lock(mutex_);
    is_new_ = true;
    return std::exchange(disk_, by ? std::move(by) : std::make_shared<SimFileSystem>(2));
  }
  std::shared_ptr<SimFileSystem> disk() const {
    const std::lock_guard lock(mutex_);
    return disk_;
  }

  Result<Attached> attach() override {
    if (const auto error = state_->get(&State::attach)) return make_error_code(*error);
    const std::lock_guard lock(mutex_);
    return std::exchange(is_new_, false) ? Attached::Anew : Attached::Same;
  }
  Result<std::unique_ptr<File>> create(std::string_view name) override {
    if (const auto error = state_->get(&State::changes)) return make_error_code(*error);
    return wrapped(disk()->create(name));
  }
  Result<std::unique_ptr<File>> open(std::string_view name) override {
    return wrapped(disk()->open(name));
  }
  Result<std::vector<std::string>> list() const override {
    if (const auto error = state_->get(&State::reads)) return make_error_code(*error);
    return disk()->list();
  }
  Result<> remove(std::string_view name) override {
    if (const auto error = state_->get(&State::changes)) return make_error_code(*error);
    return disk()->remove(name);
  }
  Result<> sync_directory() override {
    if (const auto error = state_->get(&State::changes)) return make_error_code(*error);
    return disk()->sync_directory();
  }

 private:
  struct State {
    std::optional<Error> get(std::optional<Error> State::*member) const {
      const std::lock_guard lock(mutex);
      return this->*member;
    }
    void set(std::optional<Error> State::*member, std::optional<Error> error) {
      const std::lock_guard lock(mutex);
      this->*member = error;
    }
    mutable std::mutex mutex;
    std::optional<Error> attach, changes, reads;
  };
  class TroubledFile final : public File {
   public:
    TroubledFile(std::unique_ptr<File> file, std::shared_ptr<SimFileSystem> disk,
                 std::shared_ptr<State> state)
        : disk_(std::move(disk)), file_(std::move(file)), state_(std::move(state)) {}
    Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                                ReadMode mode) const override {
      if (const auto error = state_->get(&State::reads)) return make_error_code(*error);
      return file_->read_at(offset, out, mode);
    }
    Result<> write_at(std::uint64_t offset,
                      std::span<const std::span<const std::byte>> pieces) override {
      if (const auto error = state_->get(&State::changes)) return make_error_code(*error);
      return file_->write_at(offset, pieces);
    }
    Result<> reserve(std::uint64_t size_bytes) override {
      if (const auto error = state_->get(&State::changes)) return make_error_code(*error);
      return file_->reserve(size_bytes);
    }
    Result<> sync() override {
      if (const auto error = state_->get(&State::changes)) return make_error_code(*error);
      return file_->sync();
    }
    Result<std::uint64_t> size() const override { return file_->size(); }

   private:
    std::shared_ptr<SimFileSystem> disk_;  // outlives its file
    std::unique_ptr<File> file_;
    std::shared_ptr<State> state_;
  };

  Result<std::unique_ptr<File>> wrapped(Result<std::unique_ptr<File>> file) {
    if (!file) return file.error();
    return std::unique_ptr<File>(std::make_unique<TroubledFile>(std::move(*file), disk(), state_));
  }

  mutable std::mutex mutex_;
  std::shared_ptr<SimFileSystem> disk_;
  bool is_new_ = true;
  std::shared_ptr<State> state_;
};

}  // namespace secondsight::test
