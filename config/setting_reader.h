#pragma once
#include <chrono>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "config/settings.h"
#include "config/units.h"

namespace secondsight {

/// Every fault of one file, as they are found.
class FaultList {
 public:
  explicit FaultList(std::string_view file) : file_(file) {}

  void add(const toml::source_position& where, std::string message) {
    faults_.push_back({file_, where.line, where.column, std::move(message)});
  }
  bool empty() const noexcept { return faults_.empty(); }
  /// All of them, in the order of their lines. Leaves the list empty.
  std::vector<Fault> take_sorted();

 private:
  std::string file_;
  std::vector<Fault> faults_;
};

struct WholeRange {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

/// Sizes from `min` on; zero too where `zero_means` says what it stands for.
struct BytesRange {
  std::uint64_t min = 1;
  std::string_view zero_means;
};

struct DurationRange {
  std::chrono::milliseconds min{1};
  std::chrono::milliseconds max{std::chrono::hours{24}};
};

/// What a list of words may hold, and how a message calls one.
struct WordKind {
  std::string_view expected;  // "a host, such as \"example.com\","
  /// Brings a word into the form that is compared, or says what is wrong with it ("is empty");
  /// empty when all is well.
  std::string (*read)(std::string& word);
};

/// Reads the value of one key. A value that is wrong adds a fault and leaves the destination as it
/// was. Used on one thread, for as long as the parsed file lives.
class SettingReader {
 public:
  SettingReader(std::string_view table, std::string_view key, const toml::node& value,
                FaultList& faults)
      : table_(table), key_(key), value_(value), faults_(faults) {}

  void whole_number(std::uint64_t& to, WholeRange range);
  void whole_number(unsigned& to, WholeRange range);
  /// A rate in (0, max].
  void rate(double& to, double max);
  /// A string with a unit, or a whole number of bytes.
  void bytes(std::uint64_t& to, BytesRange range);
  void duration(std::chrono::milliseconds& to, DurationRange range);
  void boolean(bool& to);
  /// One word or a list of them, none twice.
  void words(std::vector<std::string>& to, const WordKind& kind);
  /// A path; empty only where `empty_means` says what that stands for.
  void path(std::string& to, std::string_view empty_means = {});
  void policy(PolicyName& to);
  void log_level(std::string& to);
  void listen(std::vector<ListenAddress>& to);
  void admin_listen(AdminSettings& to);
  /// One range or a list of them, which may be empty; none twice.
  void address_ranges(std::vector<AddressRange>& to);
  void origin_urls(std::vector<OriginUrl>& to);

 private:
  void fault(const toml::node& where, std::string_view message);
  void wrong_type(const toml::node& where, std::string_view expected);
  bool is_plain(const toml::node& where, std::string_view text);
  const std::string* one_word(std::span<const std::string_view> known);
  template <class ReadItem>
  void one_or_list(std::string_view expected, ReadItem read_item);

  std::string_view table_;
  std::string_view key_;
  const toml::node& value_;
  FaultList& faults_;
};

}  // namespace secondsight
