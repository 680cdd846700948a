#pragma once
#include <cstddef>
#include <optional>
#include <string_view>

#include "cache/policy/fields.h"

namespace secondsight::cache {

/// So many tags of one response are read, and so long ones. Beyond either, nobody can say what it
/// is tagged with: it goes with every purge by tag.
inline constexpr std::size_t kTagsMax = 1'000;
inline constexpr std::size_t kTagBytesMax = 1'024;

/// The tags of a response, one after the other: members of Surrogate-Key, which blanks separate,
/// and of Cache-Tag, which commas separate. Compared byte for byte. Allocates nothing; the fields
/// outlive it.
class TagReader {
 public:
  explicit TagReader(const policy::FieldBlock& fields) noexcept
      : line_(fields.begin()), end_(fields.end()) {}

  /// Empty: that was all, or exceeds_bounds().
  std::optional<std::string_view> next() noexcept;
  bool exceeds_bounds() const noexcept { return exceeds_bounds_; }

 private:
  bool start_line() noexcept;

  policy::FieldBlock::Iterator line_, end_;
  std::string_view rest_;  // of the line that is being read
  char separator_ = ' ';
  std::size_t count_ = 0;
  bool exceeds_bounds_ = false;
};

}  // namespace secondsight::cache
