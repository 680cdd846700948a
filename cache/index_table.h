#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace secondsight::cache {

/// A hash table for millions of small, fixed-size entries at a load of 70 to 90 percent: ordered
/// linear probing (Amble and Knuth, 1974). The tag is the hash: a slot's home is tag * capacity /
/// 2^64, so that all tags stand in ascending order, a search ends at the first greater one, and
/// growing is one pass in order. It grows by three tenths, not to the double, which is what keeps
/// an entry's memory within 20 to 30 bytes. Not thread-safe.
class IndexTable {
 public:
  /// What an entry holds beside its tag, in 12 bytes.
  struct Value {
    std::uint32_t segment = 0;
    std::uint32_t low = 0;
    std::uint32_t high = 0;
  };

  /// Null: not there. Valid until the next change.
  Value* find(std::uint64_t tag) noexcept;
  const Value* find(std::uint64_t tag) const noexcept;
  /// Replaces what the tag has.
  void insert(std::uint64_t tag, const Value& value);
  bool erase(std::uint64_t tag) noexcept;
  /// Room for so many without growing.
  void reserve(std::size_t entries);
  /// Gives back what a reservation took too much.
  void fit();
  /// Begins to fetch the cache lines that the tag's entry is on.
  void prefetch(std::uint64_t tag) const noexcept;

  std::size_t size() const noexcept { return size_; }
  std::size_t memory_bytes() const noexcept {
    return slots_ * (sizeof(std::uint64_t) + sizeof(Value));
  }

 private:
  static constexpr std::uint64_t kEmpty = 0;
  /// The tag as it stands in the table, where 0 says that a slot is empty.
  static std::uint64_t stored(std::uint64_t tag) noexcept { return tag == kEmpty ? 1 : tag; }
  std::size_t home(std::uint64_t tag) const noexcept;
  /// The slot of the tag, or of the first greater one, or an empty one.
  std::size_t seek(std::uint64_t tag) const noexcept;
  void rebuild(std::size_t capacity);
  bool rebuild_into(IndexTable& fresh) const noexcept;

  std::size_t size_ = 0;
  std::size_t capacity_ = 0;  // homes
  std::size_t slots_ = 0;     // homes, and room behind the last one; the last slot stays empty
  std::unique_ptr<std::uint64_t[]> tags_;
  std::unique_ptr<Value[]> values_;
};

}  // namespace secondsight::cache
