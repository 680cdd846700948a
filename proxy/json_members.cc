#include "proxy/json_members.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <boost/json/basic_parser_impl.hpp>

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
using boost::system::error_code;
using json::string_view;

/// Takes the names at depth one from the parser's events, and lets all else pass.
struct NameReader {
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return enter(); }
  bool on_object_end(std::size_t, error_code&) { return leave(); }
  bool on_array_begin(error_code&) { return enter(); }
  bool on_array_end(std::size_t, error_code&) { return leave(); }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    name.append(part.data(), part.size());
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code&) {
    name.append(part.data(), part.size());
    if (depth == 1) note(name);
    name.clear();
    return true;
  }
  bool on_string_part(string_view, std::size_t, error_code&) { return true; }
  bool on_string(string_view, std::size_t, error_code&) { return true; }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(std::int64_t, string_view, error_code&) { return true; }
  bool on_uint64(std::uint64_t, string_view, error_code&) { return true; }
  bool on_double(double, string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

  bool enter() {
    ++depth;
    return true;
  }
  bool leave() {
    --depth;
    return true;
  }
  void note(const std::string& found) {
    auto& list = std::find(seen.begin(), seen.end(), found) == seen.end() ? seen : repeated;
    if (std::find(list.begin(), list.end(), found) == list.end()) list.push_back(found);
  }

  std::size_t depth = 0;
  std::string name;
  std::vector<std::string> seen, repeated;
};

}  // namespace

std::vector<std::string> repeated_members(std::string_view text) {
  json::basic_parser<NameReader> parser(json::parse_options{});
  error_code error;
  parser.write_some(false, text.data(), text.size(), error);
  if (error) return {};
  return std::move(parser.handler().repeated);
}

}  // namespace secondsight::proxy
