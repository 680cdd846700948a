#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "admission/fingerprint.h"
#include "admission/huge_memory.h"
#include "admission/mark_ring.h"

// What the two-generation filter is measured against: two separate filters that take turns, as one
// would build them from a textbook or from a format's specification. They get what the
// two-generation filter has: huge pages, a striped counter of marks (that keeps none), all words
// loaded before the first branch.
namespace secondsight::bench {

/// How bits are set: by atomic OR, so that threads may share the filter, or by a plain load and
/// store, which needs a lock around it.
enum class Marking { Shared, Exclusive };

/// The same sighting on any two filters: "seen before? mark it" in `current`, ask `previous`.
/// `Filter` has Place, place_of(), prefetch(), missing(), mark() and clear(). Threads: prefetch()
/// and sight() from any thread where the filter marks Shared; the others from one at rest.
template <typename Filter>
class Pair {
 public:
  explicit Pair(std::uint64_t bits) : filters_{Filter(bits), Filter(bits)} {}

  [[gnu::always_inline]] void prefetch(const admission::Fingerprint& key) const noexcept {
    const typename Filter::Place place = filters_[0].place_of(key);
    filters_[0].prefetch(place);
    filters_[1].prefetch(place);
  }

  /// Whether the key was there before.
  bool sight(const admission::Fingerprint& key) noexcept {
    const unsigned current = current_.load(std::memory_order_acquire);
    const typename Filter::Place place = filters_[0].place_of(key);
    const bool is_new = filters_[current].missing(place) != 0;
    const bool was_unknown = filters_[current ^ 1U].missing(place) != 0;
    if (!is_new) return true;
    filters_[current].mark(place);
    marks_.add(key.high);
    return !was_unknown;
  }

  void rotate() noexcept {
    const unsigned next = current_.load(std::memory_order_relaxed) ^ 1U;
    filters_[next].clear();
    current_.store(next, std::memory_order_release);
    marks_at_rotation_ = marks_.value();
  }
  std::uint64_t marked_keys() const noexcept { return marks_.value() - marks_at_rotation_; }

 private:
  std::array<Filter, 2> filters_;
  alignas(64) std::atomic<unsigned> current_{0};
  admission::MarkRing marks_;
  std::uint64_t marks_at_rotation_ = 0;
};

/// An array of 64-bit words on huge pages.
class WordArray {
 public:
  using Word = std::atomic<std::uint64_t>;

  explicit WordArray(std::uint64_t bits) : memory_(bits / 8), words_(memory_.size_bytes() / 8) {
    clear();
  }
  std::uint64_t size() const noexcept { return words_; }
  Word& operator[](std::uint64_t index) const noexcept {
    return static_cast<Word*>(memory_.data())[index];
  }
  void clear() noexcept {
    for (std::uint64_t i = 0; i < words_; ++i) (*this)[i].store(0, std::memory_order_relaxed);
  }

 private:
  admission::HugeMemory memory_;
  std::uint64_t words_;
};

[[gnu::always_inline]] inline void prefetch_line(const void* address) noexcept {
  __builtin_prefetch(address);
  asm volatile("" : : "r"(address));  // or g++ 12 drops functions that only prefetch
}

/// x in [0, count), even for any count.
inline std::uint64_t share_of(std::uint64_t hash, std::uint64_t count) noexcept {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(hash) * count) >> 64U);
}

/// B. H. Bloom's filter, 1970: one bit array, k = 7 probes anywhere in it by double hashing (A.
/// Kirsch and M. Mitzenmacher, 2006).
class ClassicFilter {
 public:
  static constexpr std::size_t kProbes = 7;
  using Place = std::array<std::uint64_t, kProbes>;

  explicit ClassicFilter(std::uint64_t bits) : words_(bits) {}

  Place place_of(const admission::Fingerprint& key) const noexcept {
    Place place;
    std::uint64_t hash = key.high;
    for (std::uint64_t& bit : place) {
      bit = share_of(hash, words_.size() * 64);
      hash += key.low | 1U;
    }
    return place;
  }
  [[gnu::always_inline]] void prefetch(const Place& place) const noexcept {
    for (const std::uint64_t bit : place) prefetch_line(&words_[bit / 64]);
  }
  std::uint64_t missing(const Place& place) const noexcept {
    std::uint64_t missing = 0;
    for (const std::uint64_t bit : place) {
      missing |= ~words_[bit / 64].load(std::memory_order_relaxed) >> bit % 64 & 1U;
    }
    return missing;
  }
  void mark(const Place& place) noexcept {
    for (const std::uint64_t bit : place) {
      words_[bit / 64].fetch_or(std::uint64_t{1} << bit % 64, std::memory_order_relaxed);
    }
  }
  void clear() noexcept { words_.clear(); }

 private:
  WordArray words_;
};

/// A split-block Bloom filter: 32-byte blocks of eight 32-bit words, one bit in each, as the Apache
/// Parquet format specifies them (its salts). Two words at a time here, which is the same memory.
template <Marking kMarking>
class SplitBlockFilter {
 public:
  static constexpr std::size_t kWords = 4;
  struct Place {
    std::uint64_t first_word = 0;
    std::array<std::uint64_t, kWords> masks{};
  };

  explicit SplitBlockFilter(std::uint64_t bits) : words_(bits) {}

  Place place_of(const admission::Fingerprint& key) const noexcept {
    static constexpr std::array<std::uint32_t, 8> kSalts{0x47B6137B, 0x44974D91, 0x8824AD5B,
                                                         0xA2B7289D, 0x705495C7, 0x2DF1424B,
                                                         0x9EFC4947, 0x5C6BFB31};
    Place place;
    place.first_word = share_of(key.high, words_.size() / kWords) * kWords;
    const auto hash = static_cast<std::uint32_t>(key.low);
    for (std::size_t w = 0; w < kWords; ++w) {
      const std::uint64_t lower = std::uint64_t{1} << (hash * kSalts[2 * w] >> 27U);
      const std::uint64_t upper = std::uint64_t{1} << (hash * kSalts[2 * w + 1] >> 27U);
      place.masks[w] = lower | upper << 32U;
    }
    return place;
  }
  [[gnu::always_inline]] void prefetch(const Place& place) const noexcept {
    prefetch_line(&words_[place.first_word]);
  }
  std::uint64_t missing(const Place& place) const noexcept {
    std::uint64_t missing = 0;
    for (std::size_t w = 0; w < kWords; ++w) {
      missing |= place.masks[w] & ~words_[place.first_word + w].load(std::memory_order_relaxed);
    }
    return missing;
  }
  void mark(const Place& place) noexcept {
    for (std::size_t w = 0; w < kWords; ++w) {
      WordArray::Word& word = words_[place.first_word + w];
      if constexpr (kMarking == Marking::Shared) {
        word.fetch_or(place.masks[w], std::memory_order_relaxed);
      } else {
        word.store(word.load(std::memory_order_relaxed) | place.masks[w],
                   std::memory_order_relaxed);
      }
    }
  }
  void clear() noexcept { words_.clear(); }

 private:
  WordArray words_;
};

using ClassicPair = Pair<ClassicFilter>;
using SplitBlockPair = Pair<SplitBlockFilter<Marking::Shared>>;

/// The split-block pair with plain stores behind one mutex, which is how a filter that knows
/// nothing of threads is shared.
class LockedSplitBlockPair {
 public:
  explicit LockedSplitBlockPair(std::uint64_t bits) : pair_(bits) {}

  [[gnu::always_inline]] void prefetch(const admission::Fingerprint& key) const noexcept {
    pair_.prefetch(key);
  }
  bool sight(const admission::Fingerprint& key) noexcept {
    const std::lock_guard lock(mutex_);
    return pair_.sight(key);
  }
  void rotate() noexcept { pair_.rotate(); }
  std::uint64_t marked_keys() const noexcept { return pair_.marked_keys(); }

 private:
  std::mutex mutex_;
  Pair<SplitBlockFilter<Marking::Exclusive>> pair_;
};

}  // namespace secondsight::bench
