#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/file_system.h"

namespace secondsight::test {

/// An in-memory disk that fails on purpose, deterministically from its seed.
///
/// Fault model. Writes reach durable media at sync(); until then each 512-byte sector that was
/// written may at a power cycle be kept, lost, or torn (one half kept). The same goes for a file's
/// growth. File creation and removal reach media at sync_directory(), each on its own kept or lost
/// before. A write that fails may have written a part of its bytes. A failed sync loses the
/// unsynced sectors: they are never written, and the page cache may go on showing them or not.
/// Space is given back when a file is removed and closed. A write may be planned to go astray: to
/// another place of its file, or nowhere. Calls that are interrupted or short are the file system's
/// own business (faulty_system_calls.h). Not modelled: latency. Thread-safe.
class SimFileSystem final : public FileSystem {
 public:
  explicit SimFileSystem(std::uint64_t seed);
  ~SimFileSystem() override;

  /// How many calls have run, on files too, reads included: the points at which to fail.
  std::uint64_t operations() const;
  /// The power fails during that operation (counted from 0) and stays off until power_cycle().
  void crash_at(std::uint64_t operation);
  bool has_crashed() const;
  /// Settles what was unsynced, forgets handles and planned faults.
  void power_cycle();
  /// The process is killed: all its calls fail and do nothing until start_process(), which finds
  /// what it wrote, synced or not.
  void end_process();
  /// That operation (counted from 0) and all later ones are not done any more: the process was
  /// killed before it.
  void kill_at(std::uint64_t operation);
  void start_process();
  /// That operation (counted from 0) fails with `error`.
  void fail_operation(std::uint64_t operation, boost::system::errc::errc_t error);
  /// That write (an operation, counted from 0) is said to be done and is not: its bytes arrive
  /// elsewhere in its file, on media at once, or are lost. Of other operations nothing comes.
  void send_astray(std::uint64_t operation);
  /// How many failed, by fail_operation() or by fail_every_sync().
  std::uint64_t failed_operations() const;
  /// Each sync of a file or of the directory fails with io_error from here on, until power_cycle().
  void fail_every_sync();
  /// All files together; growth beyond it fails with no_space_on_device.
  void set_capacity_bytes(std::uint64_t bytes);
  /// PageCacheOnly reads answer resource_unavailable_try_again until set back.
  enum class PageCache : std::uint8_t { Warm, Cold };
  void set_page_cache(PageCache state);

  /// The file, as read and on media. It must exist.
  void flip_bit(std::string_view name, std::uint64_t bit);
  std::vector<std::byte> contents(std::string_view name) const;
  void set_contents(std::string_view name, std::vector<std::byte> bytes);
  std::uint64_t bytes_used() const;
  std::uint64_t bytes_used_peak() const;

  Result<std::unique_ptr<File>> create(std::string_view name) override;
  Result<std::unique_ptr<File>> open(std::string_view name) override;
  Result<std::vector<std::string>> list() const override;
  Result<> remove(std::string_view name) override;
  Result<> sync_directory() override;

 private:
  struct Inode;
  class SimFile;
  using Directory = std::map<std::string, std::shared_ptr<Inode>, std::less<>>;

  /// Counts the operation; what is to fail it, if anything. Needs the lock, as all below.
  boost::system::error_code begin_operation() const;
  boost::system::error_code sync_error() const;
  /// Whether the power failed during this very operation, which may then be done in part.
  bool is_crash_point() const;
  bool flip_coin() const;
  void write_astray(Inode& inode, const std::vector<std::byte>& data);
  std::uint64_t draw(std::uint64_t below) const;
  std::uint64_t used() const;
  Result<> grow(Inode& inode, std::uint64_t size);
  void settle(Inode& inode);
  const std::shared_ptr<Inode>& inode_of(std::string_view name) const;

  mutable std::mutex mutex_;
  mutable std::mt19937_64 random_;
  mutable std::uint64_t operations_ = 0;
  mutable std::uint64_t failed_operations_ = 0;
  mutable bool has_crashed_ = false;
  mutable bool has_process_ = true;
  std::optional<std::uint64_t> kill_at_;
  std::optional<std::uint64_t> crash_at_;
  std::map<std::uint64_t, boost::system::errc::errc_t> failures_;
  std::set<std::uint64_t> astray_;
  bool fails_every_sync_ = false;
  PageCache page_cache_ = PageCache::Warm;
  std::uint64_t capacity_bytes_;
  std::uint64_t used_peak_ = 0;
  std::uint64_t boot_ = 0;  // handles of an earlier one are dead
  Directory live_, durable_;
  std::vector<std::weak_ptr<Inode>> inodes_;  // removed but open ones included
};

}  // namespace secondsight::test
