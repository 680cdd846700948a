#pragma once
#include <cstddef>

namespace secondsight::admission {

/// Zeroed memory for one large table that is read at random: aligned to 2 MiB and advised to be
/// backed by huge pages, which take a third off a cold access (fewer TLB misses). A kernel without
/// them gives ordinary pages: slower, not wrong. Immutable after construction.
class HugeMemory {
 public:
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

  /// `bytes` is rounded up to whole huge pages. Throws std::bad_alloc when there is no room.
  explicit HugeMemory(std::size_t bytes);
  ~HugeMemory();
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace secondsight::admission
