#include "cache/index_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace secondsight::cache {
namespace {

constexpr std::size_t kCapacityMin = 16;
constexpr std::size_t kValuesPerLine = 64 / sizeof(IndexTable::Value);

/// At most nine tenths of the homes are taken.
constexpr std::size_t entries_max(std::size_t capacity) noexcept {
  return capacity - capacity / 10;
}
/// Four fifths full: filled up to nine tenths a table is slower to insert into than to grow.
constexpr std::size_t capacity_for(std::size_t entries) noexcept {
  return std::max(kCapacityMin, entries + entries / 4 + 1);
}
constexpr std::size_t grown(std::size_t capacity) noexcept {
  return std::max(kCapacityMin, capacity + capacity * 3 / 10);
}
/// Where the last homes' entries go that are pushed on. Full: the table grows before its time.
constexpr std::size_t slots_for(std::size_t capacity) noexcept {
  return capacity + 32 + capacity / 64;
}

/// Moves [first, last) by one slot up or down.
template <class T>
void move_run(T* slots, std::size_t first, std::size_t last, std::ptrdiff_t by) noexcept {
  std::memmove(slots + static_cast<std::ptrdiff_t>(first) + by, slots + first,
               (last - first) * sizeof(T));
}

}  // namespace

std::size_t IndexTable::home(std::uint64_t tag) const noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::size_t>((Wide{tag} * capacity_) >> 64);
}

std::size_t IndexTable::seek(std::uint64_t tag) const noexcept {
  std::size_t slot = home(tag);
  while (tags_[slot] != kEmpty && tags_[slot] < tag) ++slot;
  return slot;
}

const IndexTable::Value* IndexTable::find(std::uint64_t tag) const noexcept {
  if (size_ == 0) return nullptr;
  tag = stored(tag);
  const std::size_t slot = seek(tag);
  return tags_[slot] == tag ? &values_[slot] : nullptr;
}

IndexTable::Value* IndexTable::find(std::uint64_t tag) noexcept {
  return const_cast<Value*>(std::as_const(*this).find(tag));
}

void IndexTable::prefetch(std::uint64_t tag) const noexcept {
  if (capacity_ == 0) return;
  const std::size_t slot = home(stored(tag));
  __builtin_prefetch(&tags_[slot], 1);
  __builtin_prefetch(&values_[slot], 1);
  __builtin_prefetch(&values_[slot + kValuesPerLine], 1);  // where the run behind it is moved
}

void IndexTable::insert(std::uint64_t tag, const Value& value) {
  tag = stored(tag);
  if (capacity_ == 0) rebuild(kCapacityMin);
  for (;;) {
    const std::size_t slot = seek(tag);
    if (tags_[slot] == tag) {
      values_[slot] = value;
      return;
    }
    std::size_t end = slot;
    while (tags_[end] != kEmpty) ++end;
    if (size_ < entries_max(capacity_) && end + 1 < slots_) {
      move_run(tags_.get(), slot, end, 1);
      move_run(values_.get(), slot, end, 1);
      tags_[slot] = tag;
      values_[slot] = value;
      ++size_;
      return;
    }
    rebuild(grown(capacity_));
  }
}

bool IndexTable::erase(std::uint64_t tag) noexcept {
  if (size_ == 0) return false;
  tag = stored(tag);
  const std::size_t slot = seek(tag);
  if (tags_[slot] != tag) return false;
  // Those behind it that are not at home move up.
  std::size_t end = slot + 1;
  while (tags_[end] != kEmpty && home(tags_[end]) != end) ++end;
  move_run(tags_.get(), slot + 1, end, -1);
  move_run(values_.get(), slot + 1, end, -1);
  tags_[end - 1] = kEmpty;
  --size_;
  return true;
}

void IndexTable::reserve(std::size_t entries) {
  if (entries > entries_max(capacity_)) rebuild(capacity_for(entries));
}

void IndexTable::fit() {
  if (capacity_for(size_) + capacity_ / 4 < capacity_) rebuild(capacity_for(size_));
}

/// In order, so one pass. False: the room behind the last home does not do.
bool IndexTable::rebuild_into(IndexTable& fresh) const noexcept {
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < slots_; ++slot) {
    if (tags_[slot] == kEmpty) continue;
    const std::size_t to = std::max(next, fresh.home(tags_[slot]));
    if (to + 1 >= fresh.slots_) return false;
    fresh.tags_[to] = tags_[slot];
    fresh.values_[to] = values_[slot];
    next = to + 1;
  }
  fresh.size_ = size_;
  return true;
}

void IndexTable::rebuild(std::size_t capacity) {
  for (;; capacity = grown(capacity)) {
    IndexTable fresh;
    fresh.capacity_ = capacity;
    fresh.slots_ = slots_for(capacity);
    fresh.tags_ = std::make_unique<std::uint64_t[]>(fresh.slots_);
    fresh.values_ = std::make_unique_for_overwrite<Value[]>(fresh.slots_);
    if (!rebuild_into(fresh)) continue;
    *this = std::move(fresh);
    return;
  }
}

}  // namespace secondsight::cache
