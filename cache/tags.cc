#include "cache/tags.h"

#include <algorithm>

namespace secondsight::cache {
namespace {

constexpr std::string_view kBlanks = " \t";

std::string_view trimmed(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

}  // namespace

/// The next line that holds tags; false: there is none.
bool TagReader::start_line() noexcept {
  for (; line_ != end_; ++line_) {
    const policy::FieldLine line = *line_;
    const bool by_blanks = policy::equals_ignoring_case(line.name, "Surrogate-Key");
    if (!by_blanks && !policy::equals_ignoring_case(line.name, "Cache-Tag")) continue;
    separator_ = by_blanks ? ' ' : ',';
    rest_ = line.value;
    ++line_;
    return true;
  }
  return false;
}

std::optional<std::string_view> TagReader::next() noexcept {
  for (;;) {
    if (rest_.empty() && !start_line()) return std::nullopt;
    const std::size_t size =
        std::min(separator_ == ',' ? rest_.find(',') : rest_.find_first_of(kBlanks), rest_.size());
    const std::string_view tag = trimmed(rest_.substr(0, size));
    rest_.remove_prefix(std::min(size + 1, rest_.size()));
    if (tag.empty()) continue;
    if (tag.size() > kTagBytesMax || ++count_ > kTagsMax) {
      exceeds_bounds_ = true;
      return std::nullopt;
    }
    return tag;
  }
}

}  // namespace secondsight::cache
