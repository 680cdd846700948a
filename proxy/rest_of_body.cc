#include "proxy/rest_of_body.h"

#include <algorithm>
#include <string>
#include <utility>

#include "cache/policy/validation.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;

/// What a Content-Range of this part begins with: "bytes 5-9/", or "bytes 5-" with the end open.
std::string range_text(std::uint64_t first, std::optional<std::uint64_t> end, const char* unit) {
  std::string text = unit + std::to_string(first) + "-";
  if (end) text += std::to_string(*end - 1);
  return text;
}

}  // namespace

RestOfBody::RestOfBody(WorkerServices& services, const cache::CacheKey& key, OriginRequest request,
                       const policy::FieldBlock& fields, const cache::ObjectHead& head,
                       std::uint64_t first, std::optional<std::uint64_t> end)
    : services_(services),
      key_(key),
      request_(std::move(request)),
      fields_(fields),
      etag_(head.facts.etag),
      first_(first),
      end_(end),
      reader_(services, fields) {}

net::awaitable<bool> RestOfBody::open() {
  if (!policy::matches_strongly(etag_, etag_)) co_return false;
  FlightPlan plan{.primary = key_, .key = key_, .facts = {}, .fields = fields_};
  plan.request = std::move(request_);
  plan.request.method = "GET";
  plan.request.fields = policy::with_validators(plan.request.fields, {}, {});
  plan.request.fields.add("Range", range_text(first_, end_, "bytes="));
  plan.request.fields.add("If-Range", etag_);
  auto flight = std::make_shared<Flight>(services_, std::move(plan));
  flight->begin(&reader_);
  if (co_await reader_.arrive() != Arrival::Head) co_return false;
  co_return is_same_part(*reader_.head());
}

bool RestOfBody::is_same_part(const cache::ObjectHead& answer) {
  if (!policy::matches_strongly(answer.facts.etag, etag_)) return false;
  if (answer.status == 206) {
    const auto range = answer.fields.find("Content-Range");
    if (!range) return false;
    const std::string wanted = range_text(first_, end_, "bytes ") + (end_ ? "/" : "");
    return range->starts_with(wanted);
  }
  skip_bytes_ = first_;
  return answer.status == 200 && (!end_ || reader_.content_length() == end_);
}

net::awaitable<Result<std::span<const std::span<const std::byte>>>> RestOfBody::next() {
  for (;;) {
    const auto got = co_await reader_.next();
    if (!got || got->empty() || skip_bytes_ == 0) co_return got;
    pieces_.clear();
    for (std::span<const std::byte> piece : *got) {
      const auto skipped = std::min<std::uint64_t>(skip_bytes_, piece.size());
      skip_bytes_ -= skipped;
      if (skipped < piece.size()) pieces_.push_back(piece.subspan(skipped));
    }
    if (!pieces_.empty()) co_return std::span<const std::span<const std::byte>>(pieces_);
  }
}

}  // namespace secondsight::proxy
