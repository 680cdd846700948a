#include "tests/support/sim_file_system.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "config/check.h"

namespace secondsight::test {
namespace {

using boost::system::error_code;
using boost::system::errc::make_error_code;
namespace errc = boost::system::errc;

constexpr std::uint64_t kSectorBytes = 512;

/// Copies [from, to) of `source` over `target`, as far as both have it.
void copy_range(const std::vector<std::byte>& source, std::vector<std::byte>& target,
                std::uint64_t from, std::uint64_t to) {
  const std::uint64_t end = std::min<std::uint64_t>({to, source.size(), target.size()});
  if (from >= end) return;
  std::copy(source.begin() + static_cast<std::ptrdiff_t>(from),
            source.begin() + static_cast<std::ptrdiff_t>(end),
            target.begin() + static_cast<std::ptrdiff_t>(from));
}

}  // namespace

struct SimFileSystem::Inode {
  std::vector<std::byte> live, durable;
  std::set<std::uint64_t> unsynced_sectors;
  bool has_name = true;  // in the live directory
  std::uint32_t handles = 0;
};

class SimFileSystem::SimFile final : public File {
 public:
  SimFile(SimFileSystem& disk, std::shared_ptr<Inode> inode)
      : disk_(disk), inode_(std::move(inode)), boot_(disk.boot_) {
    ++inode_->handles;
  }
  ~SimFile() override {
    const std::lock_guard lock(disk_.mutex_);
    --inode_->handles;
  }
  SimFile(const SimFile&) = delete;
  SimFile& operator=(const SimFile&) = delete;

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::byte> out,
                              ReadMode mode) const override {
    const std::lock_guard lock(disk_.mutex_);
    if (const auto error = begin()) return error;
    if (mode == ReadMode::PageCacheOnly && disk_.page_cache_ == PageCache::Cold)
      return make_error_code(errc::resource_unavailable_try_again);
    const auto& bytes = inode_->live;
    if (offset >= bytes.size()) return std::size_t{0};
    const std::size_t n = std::min<std::uint64_t>(out.size(), bytes.size() - offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), n, out.begin());
    return n;
  }

  Result<> write_at(std::uint64_t offset,
                    std::span<const std::span<const std::byte>> pieces) override {
    const std::lock_guard lock(disk_.mutex_);
    std::vector<std::byte> data;
    for (const auto piece : pieces) data.insert(data.end(), piece.begin(), piece.end());
    const auto error = begin();
    if (boot_ != disk_.boot_ || !disk_.has_process_) return error;
    if (disk_.has_crashed_ && !disk_.is_crash_point()) return error;
    if (error) data.resize(disk_.draw(data.size() + 1));
    if (!error && disk_.astray_.contains(disk_.operations_ - 1)) {
      disk_.write_astray(*inode_, data);
      return {};
    }
    if (auto grown =
            disk_.grow(*inode_, std::max<std::uint64_t>(inode_->live.size(), offset + data.size()));
        !grown)
      return grown;
    std::copy(data.begin(), data.end(), inode_->live.begin() + static_cast<std::ptrdiff_t>(offset));
    for (std::uint64_t at = offset / kSectorBytes; at * kSectorBytes < offset + data.size(); ++at)
      inode_->unsynced_sectors.insert(at);
    if (error) return error;
    return {};
  }

  Result<> reserve(std::uint64_t size_bytes) override {
    const std::lock_guard lock(disk_.mutex_);
    if (const auto error = begin()) return error;
    return disk_.grow(*inode_, std::max<std::uint64_t>(inode_->live.size(), size_bytes));
  }

  Result<> sync() override {
    const std::lock_guard lock(disk_.mutex_);
    auto error = begin();
    if (!error) error = disk_.sync_error();
    if (boot_ != disk_.boot_ || !disk_.has_process_) return error;
    if (error && disk_.has_crashed_) return error;  // power_cycle() settles
    if (error) {
      inode_->durable.resize(inode_->live.size());
      if (disk_.flip_coin())
        for (const std::uint64_t at : inode_->unsynced_sectors)
          copy_range(inode_->durable, inode_->live, at * kSectorBytes, (at + 1) * kSectorBytes);
      inode_->unsynced_sectors.clear();
      return error;
    }
    inode_->durable.resize(inode_->live.size());
    for (const std::uint64_t at : inode_->unsynced_sectors)
      copy_range(inode_->live, inode_->durable, at * kSectorBytes, (at + 1) * kSectorBytes);
    inode_->unsynced_sectors.clear();
    return {};
  }

  Result<std::uint64_t> size() const override {
    const std::lock_guard lock(disk_.mutex_);
    if (const auto error = begin()) return error;
    return std::uint64_t{inode_->live.size()};
  }

 private:
  error_code begin() const {
    if (boot_ != disk_.boot_) return make_error_code(errc::bad_file_descriptor);
    return disk_.begin_operation();
  }

  SimFileSystem& disk_;
  std::shared_ptr<Inode> inode_;
  std::uint64_t boot_;
};

SimFileSystem::SimFileSystem(std::uint64_t seed)
    : random_(seed), capacity_bytes_(std::numeric_limits<std::uint64_t>::max()) {}
SimFileSystem::~SimFileSystem() = default;

bool SimFileSystem::is_crash_point() const {
  return crash_at_ && operations_ - 1 == *crash_at_;
}
void SimFileSystem::write_astray(Inode& inode, const std::vector<std::byte>& data) {
  if (inode.live.size() <= data.size() || flip_coin()) return;
  const std::uint64_t places = (inode.live.size() - data.size()) / kSectorBytes;
  const auto at = static_cast<std::ptrdiff_t>(draw(places + 1) * kSectorBytes);
  inode.durable.resize(inode.live.size());
  for (auto* bytes : {&inode.live, &inode.durable})
    std::copy(data.begin(), data.end(), bytes->begin() + at);
}

bool SimFileSystem::flip_coin() const {
  return draw(2) == 1;
}
std::uint64_t SimFileSystem::draw(std::uint64_t below) const {
  return random_() % below;
}

error_code SimFileSystem::begin_operation() const {
  if (!has_process_) return make_error_code(errc::io_error);
  const std::uint64_t operation = operations_++;
  if (kill_at_ && operation >= *kill_at_) {
    has_process_ = false;
    return make_error_code(errc::io_error);
  }
  if (crash_at_ && operation >= *crash_at_) has_crashed_ = true;
  if (has_crashed_) return make_error_code(errc::io_error);
  const auto failure = failures_.find(operation);
  if (failure == failures_.end()) return {};
  ++failed_operations_;
  return make_error_code(failure->second);
}

error_code SimFileSystem::sync_error() const {
  if (!fails_every_sync_) return {};
  ++failed_operations_;
  return make_error_code(errc::io_error);
}

std::uint64_t SimFileSystem::operations() const {
  const std::lock_guard lock(mutex_);
  return operations_;
}

void SimFileSystem::crash_at(std::uint64_t operation) {
  const std::lock_guard lock(mutex_);
  crash_at_ = operation;
}

bool SimFileSystem::has_crashed() const {
  const std::lock_guard lock(mutex_);
  return has_crashed_;
}

void SimFileSystem::fail_operation(std::uint64_t operation, errc::errc_t error) {
  const std::lock_guard lock(mutex_);
  failures_[operation] = error;
}

std::uint64_t SimFileSystem::failed_operations() const {
  const std::lock_guard lock(mutex_);
  return failed_operations_;
}

void SimFileSystem::end_process() {
  const std::lock_guard lock(mutex_);
  has_process_ = false;
}

void SimFileSystem::kill_at(std::uint64_t operation) {
  const std::lock_guard lock(mutex_);
  kill_at_ = operation;
}

void SimFileSystem::start_process() {
  const std::lock_guard lock(mutex_);
  kill_at_.reset();
  has_process_ = true;
  ++boot_;
}

void SimFileSystem::send_astray(std::uint64_t operation) {
  const std::lock_guard lock(mutex_);
  astray_.insert(operation);
}

void SimFileSystem::fail_every_sync() {
  const std::lock_guard lock(mutex_);
  fails_every_sync_ = true;
}

void SimFileSystem::set_capacity_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  capacity_bytes_ = bytes;
}

void SimFileSystem::set_page_cache(PageCache state) {
  const std::lock_guard lock(mutex_);
  page_cache_ = state;
}

void SimFileSystem::settle(Inode& inode) {
  if (inode.durable.size() < inode.live.size() && flip_coin())
    inode.durable.resize(inode.live.size());
  for (const std::uint64_t at : inode.unsynced_sectors) {
    constexpr std::uint64_t kHalf = kSectorBytes / 2;
    const std::uint64_t start = at * kSectorBytes;
    switch (draw(4)) {
      case 0:
        break;
      case 1:
        copy_range(inode.live, inode.durable, start, start + kHalf);
        break;
      case 2:
        copy_range(inode.live, inode.durable, start + kHalf, start + kSectorBytes);
        break;
      default:
        copy_range(inode.live, inode.durable, start, start + kSectorBytes);
    }
  }
  inode.unsynced_sectors.clear();
  inode.live = inode.durable;
}

void SimFileSystem::power_cycle() {
  const std::lock_guard lock(mutex_);
  std::set<std::string> names;
  for (const auto& [name, inode] : live_) names.insert(name);
  for (const auto& [name, inode] : durable_) names.insert(name);
  for (const std::string& name : names) {
    const auto now = live_.find(name);
    const auto before = durable_.find(name);
    const bool has_changed = (now == live_.end()) != (before == durable_.end()) ||
                             (now != live_.end() && now->second != before->second);
    if (!has_changed || flip_coin()) continue;
    if (now == live_.end())
      durable_.erase(before);
    else
      durable_[name] = now->second;
  }
  for (const auto& [name, inode] : live_) inode->has_name = false;
  for (const auto& [name, inode] : durable_) {
    settle(*inode);
    inode->has_name = true;
  }
  live_ = durable_;
  ++boot_;
  has_crashed_ = false;
  crash_at_.reset();
  failures_.clear();
  fails_every_sync_ = false;
  page_cache_ = PageCache::Warm;
}

std::uint64_t SimFileSystem::used() const {
  std::uint64_t bytes = 0;
  for (const auto& weak : inodes_)
    if (const auto inode = weak.lock(); inode && (inode->has_name || inode->handles > 0))
      bytes += inode->live.size();
  return bytes;
}

Result<> SimFileSystem::grow(Inode& inode, std::uint64_t size) {
  const std::uint64_t more = size - inode.live.size();
  if (more == 0) return {};
  const std::uint64_t total = used() + more;
  if (total > capacity_bytes_) return make_error_code(errc::no_space_on_device);
  used_peak_ = std::max(used_peak_, total);
  inode.live.resize(size);
  return {};
}

std::uint64_t SimFileSystem::bytes_used() const {
  const std::lock_guard lock(mutex_);
  return used();
}

std::uint64_t SimFileSystem::bytes_used_peak() const {
  const std::lock_guard lock(mutex_);
  return used_peak_;
}

const std::shared_ptr<SimFileSystem::Inode>& SimFileSystem::inode_of(std::string_view name) const {
  const auto at = live_.find(name);
  CHECK(at != live_.end());
  return at->second;
}

void SimFileSystem::flip_bit(std::string_view name, std::uint64_t bit) {
  const std::lock_guard lock(mutex_);
  Inode& inode = *inode_of(name);
  const auto mask = static_cast<std::byte>(1U << (bit % 8));
  for (auto* bytes : {&inode.live, &inode.durable})
    if (bit / 8 < bytes->size()) (*bytes)[bit / 8] ^= mask;
}

std::vector<std::byte> SimFileSystem::contents(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return inode_of(name)->live;
}

void SimFileSystem::set_contents(std::string_view name, std::vector<std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  auto& inode = live_[std::string(name)];
  if (!inode) {
    inode = std::make_shared<Inode>();
    inodes_.push_back(inode);
  }
  inode->live = inode->durable = std::move(bytes);
  durable_[std::string(name)] = inode;
}

Result<std::unique_ptr<File>> SimFileSystem::create(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto error = begin_operation()) return error;
  if (live_.contains(name)) return make_error_code(errc::file_exists);
  auto inode = std::make_shared<Inode>();
  live_[std::string(name)] = inode;
  std::erase_if(inodes_, [](const auto& weak) { return weak.expired(); });
  inodes_.push_back(inode);
  return std::unique_ptr<File>(std::make_unique<SimFile>(*this, std::move(inode)));
}

Result<std::unique_ptr<File>> SimFileSystem::open(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (const auto error = begin_operation()) return error;
  const auto at = live_.find(name);
  if (at == live_.end()) return make_error_code(errc::no_such_file_or_directory);
  return std::unique_ptr<File>(std::make_unique<SimFile>(*this, at->second));
}

Result<std::vector<std::string>> SimFileSystem::list() const {
  const std::lock_guard lock(mutex_);
  if (const auto error = begin_operation()) return error;
  std::vector<std::string> names;
  for (const auto& [name, inode] : live_) names.push_back(name);
  return names;
}

Result<> SimFileSystem::remove(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto error = begin_operation();
  const bool happens = !error || (is_crash_point() && flip_coin());
  const auto at = live_.find(name);
  if (happens && at != live_.end()) {
    at->second->has_name = false;
    live_.erase(at);
  } else if (happens) {
    return make_error_code(errc::no_such_file_or_directory);
  }
  if (error) return error;
  return {};
}

Result<> SimFileSystem::sync_directory() {
  const std::lock_guard lock(mutex_);
  if (const auto error = begin_operation()) return error;
  if (const auto error = sync_error()) return error;
  durable_ = live_;
  return {};
}

}  // namespace secondsight::test
