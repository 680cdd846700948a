#include "cache/variants.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "cache/policy/read_facts.h"

namespace secondsight::cache {
namespace {

// A marker's head: "Vary: a, b", then for each variant one line
//   Variant: FINGERPRINT BY-LANGUAGE ETAG VARY-TEXT
// with fingerprints of 32 hexadecimal digits, "-" for what is not there, and the text, which may
// hold blanks, last.
constexpr std::string_view kLineName = "Variant";
constexpr std::string_view kNothing = "-";
constexpr std::size_t kHexDigits = 16;
constexpr std::size_t kFingerprintChars = 2 * kHexDigits;

/// What is longer is not worth its place in every marker.
constexpr std::size_t kEtagBytesMax = 64;
constexpr std::size_t kVaryTextBytesMax = 256;

using FingerprintText = std::array<char, kFingerprintChars>;

FingerprintText to_hex(const admission::Fingerprint& fingerprint) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  FingerprintText text;
  for (std::size_t i = 0; i < kHexDigits; ++i) {
    const unsigned shift = static_cast<unsigned>(kHexDigits - 1 - i) * 4;
    text[i] = kDigits[fingerprint.high >> shift & 15U];
    text[kHexDigits + i] = kDigits[fingerprint.low >> shift & 15U];
  }
  return text;
}

std::optional<admission::Fingerprint> from_hex(std::string_view text) {
  if (text.size() != kFingerprintChars) return std::nullopt;
  admission::Fingerprint fingerprint;
  const char* const middle = text.data() + kHexDigits;
  const auto high = std::from_chars(text.data(), middle, fingerprint.high, 16);
  const auto low = std::from_chars(middle, middle + kHexDigits, fingerprint.low, 16);
  if (high.ptr != middle || low.ptr != middle + kHexDigits) return std::nullopt;
  return fingerprint;
}

/// The line's next word; what is left begins behind its blank.
std::string_view take_word(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::optional<Variant> read_variant(std::string_view line) {
  const auto fingerprint = from_hex(take_word(line));
  if (!fingerprint) return std::nullopt;
  Variant variant;
  variant.fingerprint = *fingerprint;
  variant.by_language = from_hex(take_word(line));
  if (const auto etag = take_word(line); etag != kNothing) variant.etag = etag;
  if (line != kNothing) variant.vary_text = line;
  return variant;
}

std::string to_line(const Variant& variant) {
  const auto hex = [](const admission::Fingerprint& fingerprint) {
    const FingerprintText text = to_hex(fingerprint);
    return std::string(text.data(), text.size());
  };
  const auto or_nothing = [](const std::string& text) {
    return text.empty() ? kNothing : std::string_view(text);
  };
  std::string line = hex(variant.fingerprint);
  line.append(" ").append(variant.by_language ? hex(*variant.by_language) : std::string(kNothing));
  line.append(" ").append(or_nothing(variant.etag));
  line.append(" ").append(or_nothing(variant.vary_text));
  return line;
}

}  // namespace

Variant make_variant(const CacheKey& key, std::string_view etag,
                     const std::optional<CacheKey>& by_language) {
  Variant variant;
  variant.fingerprint = key.fingerprint();
  if (by_language) variant.by_language = by_language->fingerprint();
  if (etag.size() <= kEtagBytesMax && etag.find(' ') == std::string_view::npos) variant.etag = etag;
  // Behind the primary key's text and the epoch, each of which a line feed ends.
  const std::string_view text = std::string_view(key.text()).substr(key.text().rfind('\n') + 1);
  if (text.size() <= kVaryTextBytesMax) variant.vary_text = text;
  return variant;
}

std::vector<Variant> variants_of(const Object& marker) {
  std::vector<Variant> variants;
  for (const policy::FieldLine line : marker.head->fields) {
    if (line.name != kLineName) continue;
    if (auto variant = read_variant(line.value)) variants.push_back(std::move(*variant));
  }
  return variants;
}

bool covers(const ObjectPtr& marker, const std::vector<std::string>& vary) {
  if (!marker) return vary.empty();
  const auto& known = marker->head->facts.vary;
  return std::includes(known.begin(), known.end(), vary.begin(), vary.end());
}

bool may_have(const Object& marker, const admission::Fingerprint& fingerprint) {
  const policy::FieldBlock& lines = marker.head->fields;
  if (lines.count() <= kVariantsMax) return true;  // the first names the fields
  const FingerprintText text = to_hex(fingerprint);
  const std::string_view wanted(text.data(), text.size());
  for (const policy::FieldLine line : lines)
    if (line.value.starts_with(wanted)) return true;
  return false;
}

std::shared_ptr<Object> make_marker(const CacheKey& primary, const std::vector<std::string>& vary,
                                    WallTime epoch, const std::vector<Variant>& variants) {
  std::string names;
  for (const std::string& name : vary) names.append(names.empty() ? "" : ", ").append(name);
  auto head = std::make_shared<ObjectHead>();
  head->fields.add("Vary", names);
  for (const Variant& variant : variants) head->fields.add(kLineName, to_line(variant));
  head->facts = policy::read_facts(0, head->fields, epoch);
  head->times.response_received = epoch;
  auto marker = std::make_shared<Object>(primary, std::move(head));
  marker->is_vary_marker = true;
  return marker;
}

}  // namespace secondsight::cache
