#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace secondsight::cache::policy {

/// Without spaces and tabs at both ends (OWS, RFC 9110 5.6.3).
std::string_view trim(std::string_view text) noexcept;

/// Whether `text` is a token: at least one tchar and nothing else. RFC 9110 5.6.2.
bool is_token(std::string_view text) noexcept;

/// What a double quote means inside a list.
enum class Quotes : std::uint8_t {
  None,       // nothing: a comma always splits
  String,     // quoted-string: a backslash escapes the next byte. RFC 9110 5.6.4
  EntityTag,  // opaque-tag: no escapes. RFC 9110 8.8.3
};

/// The members of one comma-separated field value, trimmed; empty ones are skipped. RFC 9110 5.6.1.
/// The value must outlive it and what next() returns.
class ListMembers {
 public:
  explicit ListMembers(std::string_view value, Quotes quotes = Quotes::None) noexcept
      : rest_(value), quotes_(quotes) {}

  /// The next member; empty when there is none.
  std::optional<std::string_view> next() noexcept;
  /// Whether a quote was opened and never closed (the last member then runs to the end).
  bool unterminated() const noexcept { return unterminated_; }

 private:
  std::size_t member_size() noexcept;
  std::string_view rest_;
  Quotes quotes_;
  bool unterminated_ = false;
};

}  // namespace secondsight::cache::policy
