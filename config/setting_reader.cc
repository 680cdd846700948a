#include "config/setting_reader.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

#include "config/address.h"
#include "config/log.h"
#include "config/quote.h"
#include "config/setting_keys.h"
#include "config/suggestion.h"

namespace secondsight {
namespace {

constexpr std::uint64_t kMaxBytes = 1_GiB << 20U;  // 1 PiB
constexpr std::string_view kListenExample = R"("127.0.0.1:8080" or "[::1]:8080")";
constexpr std::string_view kOriginExample = R"("http://127.0.0.1:9000")";

std::string_view type_name(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "a list";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a decimal number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

std::string number_text(double number) {
  std::ostringstream text;
  text << number;
  return std::move(text).str();
}

std::string choice(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += quoted(words[i]);
  }
  return text;
}

}  // namespace

std::vector<Fault> FaultList::take_sorted() {
  std::stable_sort(faults_.begin(), faults_.end(), [](const Fault& a, const Fault& b) {
    return std::pair{a.line, a.column} < std::pair{b.line, b.column};
  });
  return std::exchange(faults_, {});
}

void SettingReader::fault(const toml::node& where, std::string_view message) {
  std::string text = heading(table_);
  text += ' ';
  text += key_;
  text += ' ';
  text += message;
  faults_.add(where.source().begin, std::move(text));
}

void SettingReader::wrong_type(const toml::node& where, std::string_view expected) {
  fault(where, "must be " + std::string{expected} + ", not " + std::string{type_name(where)});
}

/// No control bytes: a NUL would cut a path short, a newline would break a log line.
bool SettingReader::is_plain(const toml::node& where, std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  });
  if (!plain) fault(where, "must not hold control characters, as in " + quoted(text));
  return plain;
}

void SettingReader::whole_number(std::uint64_t& to, WholeRange range) {
  const auto* integer = value_.as_integer();
  if (integer == nullptr) {
    return wrong_type(value_, "a whole number, such as " + std::to_string(to));
  }
  const std::int64_t number = integer->get();
  if (number < 0 || static_cast<std::uint64_t>(number) < range.min ||
      static_cast<std::uint64_t>(number) > range.max) {
    return fault(value_, "must be between " + std::to_string(range.min) + " and " +
                             std::to_string(range.max) + ", not " + std::to_string(number));
  }
  to = static_cast<std::uint64_t>(number);
}

void SettingReader::whole_number(unsigned& to, WholeRange range) {
  range.max = std::min<std::uint64_t>(range.max, std::numeric_limits<unsigned>::max());
  std::uint64_t number = to;
  whole_number(number, range);
  to = static_cast<unsigned>(number);
}

void SettingReader::rate(double& to, double max) {
  const auto number = value_.value<double>();
  if (!value_.is_number() || !number) {
    return wrong_type(value_, "a number, such as " + number_text(to));
  }
  // Written so that NaN is refused as well.
  if (!(*number > 0 && *number <= max)) {
    return fault(value_, "must be above 0 and at most " + number_text(max) + ", not " +
                             number_text(*number));
  }
  to = *number;
}

void SettingReader::bytes(std::uint64_t& to, BytesRange range) {
  std::string written;
  bool negative = false;
  std::optional<std::uint64_t> size;
  if (const auto* integer = value_.as_integer()) {
    written = std::to_string(integer->get());
    negative = integer->get() < 0;
    size = static_cast<std::uint64_t>(integer->get());
  } else if (const auto* text = value_.as_string()) {
    written = quoted(text->get());
    size = parse_bytes(text->get());
    if (!size) {
      return fault(value_, "is " + written +
                               ", which is not a size; write a number and a unit, such as "
                               "\"512KiB\", \"64MiB\" or \"10GiB\"");
    }
  } else {
    return wrong_type(value_, "a size, such as \"64MiB\"");
  }
  const bool allowed_zero = *size == 0 && !range.zero_means.empty();
  if (negative || (!allowed_zero && *size < range.min) || *size > kMaxBytes) {
    std::string message = "must be ";
    if (!range.zero_means.empty()) message += "0 (" + std::string{range.zero_means} + ") or ";
    message += "between " + format_bytes(range.min) + " and " + format_bytes(kMaxBytes);
    return fault(value_, message + ", not " + written);
  }
  to = *size;
}

void SettingReader::duration(std::chrono::milliseconds& to, DurationRange range) {
  const auto* text = value_.as_string();
  if (text == nullptr) return wrong_type(value_, "a duration, such as \"30s\"");
  const std::string written = quoted(text->get());
  const auto duration = parse_duration(text->get());
  if (!duration) {
    return fault(value_, "is " + written +
                             ", which is not a duration; write a whole number and a unit, such as "
                             "\"250ms\", \"30s\", \"5m\", \"24h\" or \"7d\"");
  }
  if (*duration < range.min || *duration > range.max) {
    return fault(value_, "must be between " + format_duration(range.min) + " and " +
                             format_duration(range.max) + ", not " + written);
  }
  to = *duration;
}

void SettingReader::boolean(bool& to) {
  const auto* value = value_.as_boolean();
  if (value == nullptr) return wrong_type(value_, "true or false");
  to = value->get();
}

void SettingReader::path(std::string& to, std::string_view empty_means) {
  const auto* text = value_.as_string();
  if (text == nullptr) return wrong_type(value_, "a path in quotes");
  if (text->get().empty() && empty_means.empty()) return fault(value_, "must not be empty");
  if (is_plain(value_, text->get())) to = text->get();
}

/// The value, if it is one of `known`; otherwise a fault that lists them.
const std::string* SettingReader::one_word(std::span<const std::string_view> known) {
  const auto* text = value_.as_string();
  if (text == nullptr) {
    wrong_type(value_, choice(known));
    return nullptr;
  }
  const std::string& word = text->get();
  if (std::find(known.begin(), known.end(), word) != known.end()) return &word;
  std::string message = "must be " + choice(known) + ", not " + quoted(word);
  const std::string_view nearest = nearest_word(word, known);
  if (!nearest.empty()) message += "; did you mean " + quoted(nearest) + "?";
  fault(value_, message);
  return nullptr;
}

void SettingReader::policy(PolicyName& to) {
  std::array<std::string_view, kPolicyNames.size()> names;
  std::transform(kPolicyNames.begin(), kPolicyNames.end(), names.begin(),
                 [](PolicyName policy) { return to_string(policy); });
  const std::string* word = one_word(names);
  if (word == nullptr) return;
  const auto found = std::find(names.begin(), names.end(), *word);
  to = kPolicyNames[static_cast<std::size_t>(found - names.begin())];
}

void SettingReader::log_level(std::string& to) {
  constexpr std::array kLevels{LogLevel::Debug, LogLevel::Info, LogLevel::Warning, LogLevel::Error};
  std::array<std::string_view, kLevels.size()> names;
  std::transform(kLevels.begin(), kLevels.end(), names.begin(),
                 [](LogLevel level) { return to_string(level); });
  if (const std::string* word = one_word(names)) to = *word;
}

/// Calls `read_item(node, text)` for the string, or for each string of a list that is not empty.
template <class ReadItem>
void SettingReader::one_or_list(std::string_view expected, ReadItem read_item) {
  if (const auto* text = value_.as_string()) return read_item(value_, text->get());
  const auto* list = value_.as_array();
  if (list == nullptr) return wrong_type(value_, std::string{expected} + " or a list of them");
  if (list->empty()) return fault(value_, "must name at least one");
  for (const toml::node& item : *list) {
    if (const auto* text = item.as_string()) {
      read_item(item, text->get());
    } else {
      fault(item, "must list strings only, not " + std::string{type_name(item)});
    }
  }
}

void SettingReader::words(std::vector<std::string>& to, const WordKind& kind) {
  std::set<std::string> words;
  std::vector<std::string> in_order;
  one_or_list(kind.expected, [&](const toml::node& item, const std::string& text) {
    std::string word = text;
    if (const std::string reason = kind.read(word); !reason.empty())
      return fault(item, quoted(text) + " " + reason);
    if (!words.insert(word).second)
      return fault(item, "names " + quoted(word) + " twice; leave one of them out");
    in_order.push_back(std::move(word));
  });
  to = std::move(in_order);
}

void SettingReader::listen(std::vector<ListenAddress>& to) {
  std::vector<ListenAddress> addresses;
  const std::string expected = "an address, such as " + std::string{kListenExample} + ",";
  one_or_list(expected, [&](const toml::node& item, const std::string& text) {
    const auto address = parse_listen_address(text);
    if (!address) {
      return fault(item, "cannot listen on " + quoted(text) +
                             "; write a numeric address and a port, such as " +
                             std::string{kListenExample});
    }
    // Port 0 is a new port each time.
    if (address->port != 0 &&
        std::find(addresses.begin(), addresses.end(), *address) != addresses.end()) {
      return fault(item, "names " + to_string(*address) + " twice; leave one of them out");
    }
    addresses.push_back(*address);
  });
  if (!addresses.empty()) to = std::move(addresses);
}

void SettingReader::admin_listen(AdminSettings& to) {
  const auto* text = value_.as_string();
  if (text == nullptr) {
    return wrong_type(value_, "one address, such as \"127.0.0.1:9180\", or \"\" for none");
  }
  if (text->get().empty()) {
    to.enabled = false;
    return;
  }
  const auto address = parse_listen_address(text->get());
  if (!address) {
    return fault(value_, "cannot listen on " + quoted(text->get()) +
                             "; write a numeric address and a port, such as " +
                             "\"127.0.0.1:9180\", or \"\" for none");
  }
  to.enabled = true;
  to.listen = *address;
}

void SettingReader::address_ranges(std::vector<AddressRange>& to) {
  constexpr std::string_view kExample = R"("127.0.0.1" or "10.0.0.0/8")";
  std::vector<AddressRange> ranges;
  const auto* list = value_.as_array();
  if (list != nullptr && list->empty()) return to.clear();
  const std::string expected = "an address or a range, such as " + std::string{kExample} + ",";
  one_or_list(expected, [&](const toml::node& item, const std::string& text) {
    const auto range = parse_address_range(text);
    if (const auto* bad = std::get_if<BadAddressRange>(&range)) {
      return fault(item, quoted(text) + " " + bad->reason +
                             "; write an address or a range, such as " + std::string{kExample});
    }
    const auto& good = std::get<AddressRange>(range);
    if (std::find(ranges.begin(), ranges.end(), good) != ranges.end())
      return fault(item, "names " + to_string(good) + " twice; leave one of them out");
    ranges.push_back(good);
  });
  to = std::move(ranges);
}

void SettingReader::origin_urls(std::vector<OriginUrl>& to) {
  std::vector<OriginUrl> urls;
  const std::string expected = "a URL, such as " + std::string{kOriginExample} + ",";
  one_or_list(expected, [&](const toml::node& item, const std::string& text) {
    auto url = parse_origin_url(text);
    if (const auto* bad = std::get_if<BadOriginUrl>(&url)) {
      return fault(item, quoted(text) + " " + bad->reason +
                             "; write http://HOST[:PORT] or https://HOST[:PORT], such as " +
                             std::string{kOriginExample});
    }
    urls.push_back(std::get<OriginUrl>(std::move(url)));
  });
  to = std::move(urls);
}

}  // namespace secondsight
