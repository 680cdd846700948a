#include "proxy/response.h"

#include <array>
#include <charconv>

#include "cache/policy/freshness.h"
#include "cache/policy/hop_by_hop.h"
#include "cache/policy/http_date.h"
#include "cache/policy/list.h"
#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"

namespace secondsight::proxy {
namespace {

void append_number(std::string& out, std::int64_t number) {
  std::array<char, 24> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  out.append(digits.data(), end);
}

std::string_view via(int version) noexcept {
  return version == 20 ? "2 secondsight" : version == 10 ? "1.0 secondsight" : "1.1 secondsight";
}

}  // namespace

std::shared_ptr<cache::ObjectHead> make_object_head(const OriginHead& head,
                                                    const cache::policy::ExchangeTimes& times) {
  auto object = std::make_shared<cache::ObjectHead>();
  object->status = head.status;
  object->reason = head.reason;
  object->times = times;
  object->facts = cache::policy::read_facts(head.status, head.fields, times.response_received);
  object->fields = cache::policy::storable_fields(head.fields);
  if (!object->fields.contains("Date")) {
    object->fields.add("Date", cache::policy::format_http_date(times.response_received));
    object->facts.date = times.response_received;
  }
  object->fields.add("Via", via(head.version));
  cache::policy::fold_age(object->facts, object->times);
  return object;
}

std::shared_ptr<const cache::ObjectHead> freshened_head(const cache::ObjectHead& stored,
                                                        const cache::ObjectHead& told) {
  auto fresh = std::make_shared<cache::ObjectHead>();
  fresh->status = stored.status;
  fresh->reason = stored.reason;
  fresh->times = told.times;  // with the age it came with
  fresh->fields = cache::policy::freshened(stored.fields, told.fields);
  fresh->facts =
      cache::policy::read_facts(fresh->status, fresh->fields, fresh->times.response_received);
  return fresh;
}

std::string interim_head(const OriginHead& head) {
  cache::policy::FieldBlock fields = cache::policy::storable_fields(head.fields);
  fields.add("Via", via(head.version));
  return status_line(head.status, head.reason).append(fields.text());
}

std::string announced_trailers(const OriginHead& head) {
  std::string names;
  for (const auto line : head.fields) {
    if (!cache::policy::equals_ignoring_case(line.name, "Trailer")) continue;
    cache::policy::ListMembers members(line.value);
    while (const auto name = members.next()) {
      if (!cache::policy::is_token(*name) || !cache::policy::may_be_trailer(*name)) continue;
      if (cache::policy::is_named_by_connection(head.fields, *name)) continue;
      names.append(names.empty() ? "" : ", ").append(*name);
    }
  }
  return names;
}

std::vector<std::string> connection_options(const OriginHead& head) {
  std::vector<std::string> options;
  for (const auto line : head.fields) {
    if (!cache::policy::equals_ignoring_case(line.name, "Connection")) continue;
    cache::policy::ListMembers members(line.value);
    while (const auto option = members.next()) options.emplace_back(*option);
  }
  return options;
}

std::string status_line(int status, std::string_view reason) {
  std::string line = "HTTP/1.1 ";
  append_number(line, status);
  line.append(" ").append(reason).append("\r\n");
  return line;
}

std::string_view to_string(Forward f) noexcept {
  constexpr std::array<std::string_view, 9> kWords = {
      "hit", "none", "uri-miss", "vary-miss", "stale", "request", "bypass", "method", "partial"};
  return kWords[static_cast<std::size_t>(f)];
}

void append_cache_status(std::string& out, const CacheStatus& status) {
  out.append("Cache-Status: secondsight");
  if (status.forward == Forward::Hit) {
    out.append("; hit");
  } else if (status.forward != Forward::None) {
    out.append("; fwd=").append(to_string(status.forward));
    if (status.forward_status != 0) {
      out.append("; fwd-status=");
      append_number(out, status.forward_status);
    }
  }
  if (status.ttl) {
    out.append("; ttl=");
    append_number(out, status.ttl->count());
  }
  if (status.stored) out.append("; stored");
  if (status.collapsed) out.append(*status.collapsed ? "; collapsed" : "; collapsed=?0");
  if (!status.detail.empty()) out.append("; detail=").append(status.detail);
  out.append("\r\n");
}

void append_age(std::string& out, Seconds age) {
  out.append("Age: ");
  append_number(out, age.count());
  out.append("\r\n");
}

}  // namespace secondsight::proxy
