// The part of Exchange that answers PURGE, from who may send it. docs/purge.md.
#include <algorithm>
#include <array>
#include <string>

#include "cache/policy/http_date.h"
#include "proxy/exchange.h"
#include "proxy/purger.h"

namespace secondsight::proxy {
namespace {

/// "1" asks for stale instead of gone; anything else, and nothing, does not.
bool asks_for_soft(const Request& request) {
  const auto value = request.fields.joined("Soft-Purge");
  return value && *value == "1";
}

std::string_view reason_of(int status) noexcept {
  switch (status) {
    case 200:
      return "OK";
    case 403:
      return "Forbidden";
    case 414:
      return "URI Too Long";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

net::awaitable<bool> Exchange::answer_purge() {
  const auto& allow = services_.settings.purge.allow;
  if (request_.method != "PURGE" || allow.empty() || services_.purger == nullptr) co_return false;
  const bool is_allowed =
      request_.client && std::any_of(allow.begin(), allow.end(), [&](const AddressRange& range) {
        return range.contains(*request_.client);
      });
  Purger::Answer answer{403, R"({"errors":["PURGE is not allowed from this address"]})"};
  if (is_allowed) {
    const auto kind = asks_for_soft(request_) ? cache::PurgeKind::Soft : cache::PurgeKind::Hard;
    const std::string by = to_string(AddressRange{*request_.client});
    answer = co_await services_.purger->purge_url(services_.io, request_.host, request_.target,
                                                  kind, by);
  }
  detail_ = is_allowed ? "purge" : "purge-refused";
  answer.json += '\n';
  std::string patched = "Cache-Control: no-store\r\nContent-Type: application/json\r\n";
  patched.append("Cache-Status: secondsight; detail=").append(detail_).append("\r\nDate: ");
  patched.append(cache::policy::format_http_date(now_)).append("\r\n");
  const std::string line = status_line(answer.status, reason_of(answer.status));
  begin({.status = answer.status,
         .status_line = line,
         .ready = {},
         .patched = patched,
         .content_length = answer.json.size()});
  const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(answer.json))};
  const std::span<const std::span<const std::byte>> batch(pieces);
  if (co_await sink_.write(batch)) {
    note_sent(answer.json.size());
    (void)co_await sink_.finish();
  }
  finish(answer.status == 200 ? Outcome::Bypass : Outcome::Error);
  co_return true;
}

}  // namespace secondsight::proxy
