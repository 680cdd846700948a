#include "cache/policy/list.h"

#include <algorithm>

namespace secondsight::cache::policy {
namespace {

constexpr std::string_view kBlanks = " \t";

constexpr bool is_token_char(char c) noexcept {
  if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

std::size_t ListMembers::member_size() noexcept {
  bool quoted = false;
  for (std::size_t i = 0; i < rest_.size(); ++i) {
    const char c = rest_[i];
    if (c == '"' && quotes_ != Quotes::None) {
      quoted = !quoted;
    } else if (c == '\\' && quoted && quotes_ == Quotes::String) {
      ++i;
    } else if (c == ',' && !quoted) {
      return i;
    }
  }
  unterminated_ = unterminated_ || quoted;
  return rest_.size();
}

std::optional<std::string_view> ListMembers::next() noexcept {
  while (!rest_.empty()) {
    const std::size_t size = member_size();
    const std::string_view member = trim(rest_.substr(0, size));
    rest_.remove_prefix(std::min(size + 1, rest_.size()));
    if (!member.empty()) return member;
  }
  return std::nullopt;
}

}  // namespace secondsight::cache::policy
