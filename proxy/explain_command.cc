#include "proxy/explain_command.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/program_options.hpp>

#include "cache/policy/fields.h"
#include "cache/policy/list.h"
#include "config/address.h"
#include "config/settings.h"
#include "proxy/request_parser.h"

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
namespace options = boost::program_options;
namespace policy = cache::policy;

constexpr int kCannotAsk = 1;
constexpr int kBadUsage = 2;
constexpr std::chrono::seconds kPatience{20};       // an explanation may read from a slow disk
constexpr std::uint64_t kHeadBytesMax = 64U << 10;  // as the admin listener takes
constexpr unsigned kFieldsMax = 1'000;
constexpr std::size_t kLabelWidth = 13;

bool is_field(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || !policy::is_token(text.substr(0, colon))) return false;
  const std::string_view value = text.substr(colon + 1);
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte != 0x7f) || c == '\t';
  });
}

bool is_host_field(std::string_view text) {
  return policy::equals_ignoring_case(text.substr(0, text.find(':')), "Host");
}

/// Host and target of an absolute URL; the host is empty for a path. A fragment is not sent.
std::optional<std::pair<std::string, std::string>> split_url(std::string_view url) {
  const bool is_plain =
      std::all_of(url.begin(), url.end(), [](char c) { return c > 0x20 && c < 0x7f; });
  if (url.empty() || !is_plain) return std::nullopt;
  url = url.substr(0, url.find('#'));
  std::string host;
  if (!url.starts_with('/')) {
    const auto scheme_end = url.find("://");
    const std::string_view scheme = url.substr(0, scheme_end);
    if (scheme_end == std::string_view::npos || (!policy::equals_ignoring_case(scheme, "http") &&
                                                 !policy::equals_ignoring_case(scheme, "https"))) {
      return std::nullopt;
    }
    url.remove_prefix(scheme_end + 3);
    const auto host_end = std::min(url.find_first_of("/?"), url.size());
    host = url.substr(0, host_end);
    url.remove_prefix(host_end);
    if (host.empty()) return std::nullopt;
  }
  const bool has_path = url.starts_with('/');
  return std::pair{std::move(host), (has_path ? "" : "/") + std::string(url)};
}

/// Where the proxy's admin listener is.
std::variant<ListenAddress, BadUsage> admin_of(const options::variables_map& given) {
  if (given.count("admin") > 0) return find_admin(given["admin"].as<std::string>(), {});
  if (given.count("config") == 0) return AdminSettings{}.listen;
  const auto read = load_settings(given["config"].as<std::string>());
  if (const auto* faults = std::get_if<std::vector<Fault>>(&read))
    return BadUsage{to_string(faults->front())};
  return find_admin(std::nullopt, std::get<Settings>(read).admin);
}

/// What an explanation is printed as: its facts, or a line for each of its words; empty: it is
/// none.
std::string to_text(const json::object& explanation, bool as_json) {
  const auto* facts = explanation.if_contains("facts");
  const auto* words = explanation.if_contains("words");
  if (facts == nullptr || !facts->is_object() || words == nullptr || !words->is_array()) return {};
  if (as_json) return json::serialize(*facts) + "\n";
  std::string text;
  for (const json::value& line : words->get_array()) {
    const json::array* pair = line.if_array();
    if (pair == nullptr || pair->size() != 2 || !(*pair)[0].is_string() || !(*pair)[1].is_string())
      return {};
    std::string label((*pair)[0].get_string());
    label.resize(std::max(label.size() + 1, kLabelWidth), ' ');
    text.append(label).append((*pair)[1].get_string()).append("\n");
  }
  return text;
}

options::options_description known_options() {
  options::options_description known(
      "usage: secondsight explain URL [-H 'Name: value' ...] [-X METHOD]\n"
      "                           [--admin ADDRESS | --config FILE] [--json]\n\n"
      "Asks the running proxy what it would do with that request, and why. Nothing is fetched or "
      "counted.\n\n"
      "options");
  known.add_options()("header,H",
                      options::value<std::vector<std::string>>()->composing()->value_name("FIELD"),
                      "a request field, as in -H 'Accept-Language: de'; may be repeated")(
      "method,X", options::value<std::string>()->default_value("GET")->value_name("METHOD"),
      "the request's method")("admin", options::value<std::string>()->value_name("ADDRESS"),
                              "the proxy's admin listener; 127.0.0.1:9180 unless told otherwise")(
      "config", options::value<std::string>()->value_name("FILE"),
      "the proxy's configuration, to find the admin listener")(
      "json", "print the facts as JSON instead of words")("help", "print this and exit");
  return known;
}

/// With the URL, which has no name on the command line, as "url".
options::variables_map parse(int count, const char* const* arguments,
                             const options::options_description& known) {
  options::options_description all;
  all.add(known).add_options()("url", options::value<std::string>());
  options::positional_options_description positional;
  positional.add("url", 1);
  options::variables_map given;
  options::store(
      options::command_line_parser(count, arguments).options(all).positional(positional).run(),
      given);
  return given;
}

}  // namespace

std::variant<std::string, BadUsage> make_request_head(std::string_view method, std::string_view url,
                                                      const std::vector<std::string>& fields) {
  const auto parts = split_url(url);
  if (!parts) {
    return BadUsage{"not a URL such as http://host/path: \"" + std::string(url) + "\""};
  }
  if (!policy::is_token(method)) {
    return BadUsage{"not a method: \"" + std::string(method) + "\""};
  }
  for (const std::string& field : fields)
    if (!is_field(field)) return BadUsage{"not a field such as 'Name: value': \"" + field + "\""};
  const bool has_host = std::any_of(fields.begin(), fields.end(), is_host_field);
  if (parts->first.empty() && !has_host) {
    return BadUsage{"a path alone needs -H 'Host: ...'"};
  }

  std::string head(method);
  head.append(" ").append(parts->second).append(" HTTP/1.1\r\n");
  if (!has_host) head.append("Host: ").append(parts->first).append("\r\n");
  for (const std::string& field : fields) head.append(field).append("\r\n");
  head.append("\r\n");

  RequestParser parser(
      {.header_bytes = kHeadBytesMax, .header_fields = kFieldsMax, .body_bytes = UINT64_MAX});
  Request request;
  if (parser.parse(head, request) != RequestParser::Outcome::Complete) {
    return BadUsage{"not a request that the proxy takes: " + std::string(word_of(parser.fault()))};
  }
  return head;
}

int run_explain(int count, const char* const* arguments, std::ostream& out, std::ostream& error) {
  const auto refuse = [&error](const std::string& reason) {
    error << "secondsight: " << reason << "\nTry \"secondsight explain --help\".\n";
    return kBadUsage;
  };
  const auto known = known_options();
  options::variables_map given;
  try {
    given = parse(count, arguments, known);
  } catch (const options::error& bad) {
    return refuse(bad.what());
  }
  if (given.count("help") > 0) {
    out << known;
    return 0;
  }
  if (given.count("url") == 0) return refuse("explain needs a URL");
  std::vector<std::string> fields;
  if (given.count("header") > 0) fields = given["header"].as<std::vector<std::string>>();
  const auto head =
      make_request_head(given["method"].as<std::string>(), given["url"].as<std::string>(), fields);
  if (const auto* bad = std::get_if<BadUsage>(&head)) return refuse(bad->reason);
  const auto found = admin_of(given);
  if (const auto* bad = std::get_if<BadUsage>(&found)) return refuse(bad->reason);

  const auto& address = std::get<ListenAddress>(found);
  const AdminAnswer answer =
      post_to_admin(address, "/explain", "message/http", std::get<std::string>(head), kPatience);
  const auto fail = [&](const std::string& reason) {
    error << "secondsight: cannot ask the proxy at " << to_string(address) << ": " << reason
          << '\n';
    return kCannotAsk;
  };
  if (!answer.failure.empty()) return fail(answer.failure);
  json::error_code unreadable;
  const json::value content = json::parse(answer.body, unreadable);
  const json::object* explanation = unreadable ? nullptr : content.if_object();
  if (explanation != nullptr && answer.status == 400) {
    const auto* reason = explanation->if_contains("error");
    if (reason != nullptr && reason->is_string()) return refuse(std::string(reason->get_string()));
  }
  const std::string text = explanation != nullptr && answer.status == 200
                               ? to_text(*explanation, given.count("json") > 0)
                               : std::string();
  if (text.empty())
    return fail("it answers " + std::to_string(answer.status) + ", not as secondsight does");
  out << text;
  return 0;
}

}  // namespace secondsight::proxy
