// The part of Exchange that answers for itself: OPTIONS and TRACE that are to go no further.
#include <array>
#include <string>

#include "cache/policy/http_date.h"
#include "proxy/exchange.h"
#include "proxy/exchange_rules.h"

namespace secondsight::proxy {
namespace {

/// Methods that are passed on; so are those that nobody knows.
constexpr std::string_view kAllow =
    "Allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS, TRACE\r\n";

}  // namespace

net::awaitable<bool> Exchange::answer_here() {
  const OwnAnswer why = own_answer(request_);
  if (why == OwnAnswer::None) co_return false;
  const bool is_trace = request_.method == "TRACE";
  const bool is_trace_with_body = why == OwnAnswer::TraceBody;
  detail_ = to_string(why);
  std::string patched = "Cache-Control: no-store\r\nCache-Status: secondsight; detail=";
  patched.append(detail_).append("\r\nDate: ").append(cache::policy::format_http_date(now_));
  patched.append("\r\n");
  std::string line = "HTTP/1.1 200 OK\r\n";
  std::string text;
  if (is_trace_with_body) {
    line = "HTTP/1.1 400 Bad Request\r\n";
  } else if (is_trace) {
    text = traced_head(request_);
    patched.append("Content-Type: message/http\r\n");
  } else {
    patched.append(kAllow);
  }
  begin({.status = is_trace_with_body ? 400 : 200,
         .status_line = line,
         .ready = {},
         .patched = patched,
         .content_length = text.size()});
  const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(text))};
  const std::span<const std::span<const std::byte>> batch(pieces);
  if (co_await sink_.write(batch)) {
    note_sent(text.size());
    (void)co_await sink_.finish();
  }
  finish(is_trace_with_body ? Outcome::Error : Outcome::Bypass);
  co_return true;
}

}  // namespace secondsight::proxy
