#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cache/policy/fields.h"
#include "config/settings.h"

namespace secondsight::cache {

/// What one site adds to and takes from a primary key (CacheKey::primary). Made once from the
/// settings, then never changed: any thread may use it.
///
/// Text of a key: "http://host/path?query" as ever, of which the rules choose path and query. Where
/// fields or cookies count, a line feed and a "+" follow (a variant's text goes on with a digit or
/// "@" there), then for each of them, names and values led by their sizes:
///
///     h8:x-tenant=3:abc     the field's lines joined by ", " (RFC 9110 5.3)
///     h8:x-tenant!          it is missing
///     c4:lang=2:de=2:en     a cookie's values, in order
///     c4:lang-              it is there, without "=" and value
///     c4:lang!              it is missing
///
/// Two requests share a text exactly if all that the rules keep of them is equal.
class KeyRules {
 public:
  KeyRules() = default;
  explicit KeyRules(const SiteSettings& site);

  /// No rules: the key is CacheKey::primary.
  bool is_empty() const noexcept {
    return !has_target_rules_ && headers_.empty() && cookies_.empty();
  }
  bool removes_dots() const noexcept { return remove_dots_; }

  /// `host`, `target`: as for CacheKey::primary; `fields`: the request's, as received.
  /// Allocates for the text alone, unless more than 32 parameters have to be sorted.
  std::string primary_text(std::string_view scheme, std::string_view host, std::string_view target,
                           const policy::FieldBlock& fields) const;

 private:
  /// Names of parameters, whole or as prefixes.
  struct Names {
    std::vector<std::string> whole;  // sorted
    std::vector<std::string> prefixes;
    explicit Names(const std::vector<std::string>& patterns);
    Names() = default;
    bool has(std::string_view name) const noexcept;
  };

  void append_query(std::string_view query, std::string& out) const;
  bool keeps(std::string_view name) const noexcept;

  bool has_target_rules_ = false;
  bool sort_ = false;
  bool drop_empty_ = false;
  bool remove_dots_ = false;
  enum class Listed : std::uint8_t { Nothing, Kept, Dropped };
  Listed listed_ = Listed::Nothing;  // what `params_` says
  Names params_;
  std::vector<std::string> headers_;  // lower case
  std::vector<std::string> cookies_;
};

}  // namespace secondsight::cache
