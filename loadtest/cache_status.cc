#include "loadtest/cache_status.h"

namespace secondsight::loadtest {
namespace {

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Cuts the text up to the next `separator` outside quotes off the front of `rest`, with the
/// separator.
std::string_view take_until(char separator, std::string_view& rest) {
  bool quoted = false;
  std::size_t i = 0;
  for (; i < rest.size(); ++i) {
    if (quoted && rest[i] == '\\') {
      ++i;
    } else if (rest[i] == '"') {
      quoted = !quoted;
    } else if (rest[i] == separator && !quoted) {
      break;
    }
  }
  const std::string_view piece = trim(rest.substr(0, i));
  rest = i < rest.size() ? rest.substr(i + 1) : std::string_view{};
  return piece;
}

std::string_view unquote(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

void read_parameter(std::string_view parameter, CacheStatus& status) {
  const auto equals = parameter.find('=');
  const std::string_view name = parameter.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view("?1") : parameter.substr(equals + 1);
  const bool yes = value == "?1";
  if (name == "hit") status.hit = yes;
  if (name == "stored") status.stored = yes;
  if (name == "collapsed") status.collapsed = yes;
  if (name == "fwd") status.forward = value;
  if (name == "detail") status.detail = unquote(value);
}

}  // namespace

CacheStatus read_cache_status(std::string_view field, std::string_view cache) {
  CacheStatus status;
  while (!field.empty()) {
    std::string_view member = take_until(',', field);
    if (unquote(take_until(';', member)) != cache) continue;
    status = {};
    status.found = true;
    while (!member.empty()) read_parameter(take_until(';', member), status);
  }
  return status;
}

}  // namespace secondsight::loadtest
