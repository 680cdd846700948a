#include "loadtest/origin_response.h"

#include <charconv>
#include <cstdio>
#include <ctime>

#include "loadtest/object_url.h"

namespace secondsight::loadtest {
namespace {

/// Every object was last changed at the same time, long ago.
constexpr std::string_view kLastModified = "Mon, 01 Jan 2024 00:00:00 GMT";

std::string http_date(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[64];
  const std::size_t length =
      std::strftime(std::data(text), std::size(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {std::data(text), length};
}

std::string entity_tag(const Body& body) {
  char digits[16];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), body.hash(), 16).ptr;
  return '"' + std::string(std::begin(digits), end) + '"';
}

/// Weak comparison (RFC 9110 8.8.3.2) is a search here: a tag's text cannot be part of another tag.
bool names_tag(std::string_view field, std::string_view tag) {
  return field == "*" || field.find(tag) != std::string_view::npos;
}

bool read_whole(std::string_view text, std::uint64_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Range Not Satisfiable";
  }
}

}  // namespace

ByteRange read_range(std::string_view field, std::uint64_t size_bytes) {
  constexpr std::string_view kUnit = "bytes=";
  if (!field.starts_with(kUnit)) return {};
  field.remove_prefix(kUnit.size());
  const auto dash = field.find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view low = field.substr(0, dash);
  const std::string_view high = field.substr(dash + 1);
  ByteRange range;
  std::uint64_t last = 0;
  if (low.empty()) {
    if (!read_whole(high, last)) return {};
    range.first = last < size_bytes ? size_bytes - last : 0;
    range.end = size_bytes;
    range.kind =
        last > 0 && size_bytes > 0 ? ByteRange::Kind::Satisfiable : ByteRange::Kind::Unsatisfiable;
    return range;
  }
  if (!read_whole(low, range.first)) return {};
  last = UINT64_MAX;
  if (!high.empty() && (!read_whole(high, last) || last < range.first)) return {};
  range.end = last < size_bytes ? last + 1 : size_bytes;
  range.kind =
      range.first < size_bytes ? ByteRange::Kind::Satisfiable : ByteRange::Kind::Unsatisfiable;
  return range;
}

OriginResponse answer(const OriginRequestHead& request, std::chrono::seconds max_age,
                      WallTime now) {
  OriginResponse response;
  const bool head = request.method == "HEAD";
  const auto object = parse_object_target(request.target);
  std::string fields;
  std::uint64_t length = 0;
  if (!head && request.method != "GET") {
    response.status = 405;
    fields = "Allow: GET, HEAD\r\n";
  } else if (!object) {
    response.status = 404;
  } else {
    const Body& body = response.body.emplace(object->name, object->size_bytes);
    const std::string tag = entity_tag(body);
    fields = "Cache-Control: max-age=" + std::to_string(max_age.count()) + "\r\nETag: " + tag +
             "\r\nLast-Modified: " + std::string(kLastModified) +
             "\r\nContent-Type: application/octet-stream\r\nAccept-Ranges: bytes\r\n";
    response.status = 200;
    response.end = length = body.size_bytes();
    const bool ranged = !head && (request.if_range.empty() || request.if_range == tag);
    const ByteRange range = ranged ? read_range(request.range, length) : ByteRange{};
    if (!request.if_none_match.empty() && names_tag(request.if_none_match, tag)) {
      response.status = 304;
    } else if (range.kind == ByteRange::Kind::Satisfiable) {
      response.status = 206;
      response.first = range.first;
      response.end = range.end;
      fields += "Content-Range: bytes " + std::to_string(range.first) + '-' +
                std::to_string(range.end - 1) + '/' + std::to_string(length) + "\r\n";
      length = range.end - range.first;
    } else if (range.kind == ByteRange::Kind::Unsatisfiable) {
      response.status = 416;
      fields = "Content-Range: bytes */" + std::to_string(length) + "\r\n";
      length = 0;
    }
  }
  const bool bodiless = head || (response.status != 200 && response.status != 206);
  if (bodiless) response.first = response.end = 0;
  if (response.status != 304) fields += "Content-Length: " + std::to_string(length) + "\r\n";
  if (!request.keep_alive) fields += "Connection: close\r\n";
  response.head = "HTTP/1.1 " + std::to_string(response.status) + ' ' +
                  std::string(reason_of(response.status)) + "\r\nDate: " + http_date(now) + "\r\n" +
                  fields + "\r\n";
  return response;
}

}  // namespace secondsight::loadtest
