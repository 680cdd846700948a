#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace secondsight::cache::policy {

/// The value of one dictionary member. Nothing is copied: the views point into the field's text.
struct StructuredValue {
  enum class Type : std::uint8_t {
    Integer,
    Decimal,
    String,
    Token,
    ByteSequence,
    Boolean,
    Date,
    DisplayString,
    InnerList
  };
  Type type = Type::Boolean;
  /// Integer: itself. Decimal: thousandths. Boolean: 0 or 1. Date: seconds since 1970. Others: 0.
  std::int64_t number = 1;
  /// String, ByteSequence, DisplayString: what stands between the delimiters, as it was sent (not
  /// unescaped, not decoded). Token: itself. InnerList: what stands between the parentheses.
  std::string_view text;
};

struct DictionaryMember {
  std::string_view key;
  StructuredValue value;
};

/// The members of a Dictionary structured field, in the order received; of equal keys the last one
/// counts, which is the caller's to see to. Parameters are checked and skipped. RFC 9651 4.2.2
/// (which includes RFC 8941's).
///
/// One error anywhere spoils the whole field (RFC 9651 4.2): what next() gave before failed()
/// became true must be forgotten. Several field lines are joined by commas before. Allocates
/// nothing. The text must outlive it and what next() returns.
class DictionaryMembers {
 public:
  explicit DictionaryMembers(std::string_view field_value) noexcept;

  /// The next member; empty at the end and from the first error on.
  std::optional<DictionaryMember> next() noexcept;
  bool failed() const noexcept { return failed_; }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace secondsight::cache::policy
