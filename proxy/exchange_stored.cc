// The half of Exchange that answers from the cache: reading a stored response, choosing what of it
// the request gets, sending it, and going on from the origin where its bytes are lost.
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cache/partial.h"
#include "cache/policy/freshness.h"
#include "cache/policy/validation.h"
#include "proxy/disk_pool.h"
#include "proxy/exchange.h"
#include "proxy/exchange_rules.h"
#include "proxy/flight_table.h"
#include "proxy/rest_of_body.h"
#include "proxy/selection.h"

namespace secondsight::proxy {
namespace {

namespace policy = cache::policy;
using cache::CacheKey;
using cache::Detail;

/// Stored bodies up to this size are read from disk in one piece, and then kept in memory.
constexpr std::uint64_t kWholeReadBytesMax = 256U << 10;

bool wants_blocking_read(const boost::system::error_code& error) {
  return error == boost::system::errc::resource_unavailable_try_again;
}

}  // namespace

/// Leaves `found` empty when the object cannot be read: a miss.
net::awaitable<void> Exchange::read_from_disk(Found& found, const cache::Index::Entry& entry) {
  auto opened = services_.cache.open_object(found.key, entry, ReadMode::PageCacheOnly);
  if (!opened && wants_blocking_read(opened.error())) {
    auto job = [this, &found, entry] {
      return services_.cache.open_object(found.key, entry, ReadMode::Blocking);
    };
    auto answer = co_await services_.disk.run(std::move(job));
    if (!answer) co_return;  // the disk threads are behind: the origin is asked instead
    opened = std::move(*answer);
  }
  if (!opened) co_return;
  found.disk.emplace(std::move(*opened));
  const std::uint64_t body_bytes = found.disk->body_bytes;
  if (body_bytes > kWholeReadBytesMax) {
    if (facts_.method == policy::Method::Get) note_disk_hit(found);
    co_return;
  }
  std::vector<cache::ChunkPtr> body;
  if (body_bytes > 0) {
    auto chunk = std::make_shared<cache::Chunk>(body_bytes);
    const std::span<std::byte> out(*chunk);
    if (const auto read = co_await read_slice(found, 0, out); !read) {
      found.disk.reset();
      co_return;
    }
    body.push_back(std::move(chunk));
  }
  auto object =
      std::make_shared<cache::Object>(found.key, found.disk->head, std::move(body), body_bytes);
  object->is_vary_marker = found.disk->is_vary_marker;
  object->purges_seen.store(found.disk->purges_seen, std::memory_order_relaxed);
  object->on_disk.store(true, std::memory_order_relaxed);
  publish([&] {  // reading took time: what was replaced meanwhile is not to come back
    const auto still = services_.cache.find_on_disk(found.key);
    if (still && still->location == entry.location)
      services_.cache.keep(object, cache::Newcomer::SeenBefore);
  });
  if (!object->is_vary_marker && facts_.method == policy::Method::Get) note_disk_hit(found);
  found.object = std::move(object);
  found.from_disk = true;
}

void Exchange::note_disk_hit(const Found& found) {
  services_.cache.note_disk_hit(found.key);
  if (found.marker) services_.cache.note_use_of_marker(*found.marker);
}

/// An error means the object is gone, and was noted as such.
net::awaitable<Result<>> Exchange::read_slice(Found& found, std::uint64_t offset,
                                              std::span<std::byte> out) {
  cache::log::ObjectReader& reader = *found.disk->body;
  auto read = reader.read_body(offset, out, ReadMode::PageCacheOnly);
  if (!read && wants_blocking_read(read.error())) {
    auto job = [&reader, offset, out] { return reader.read_body(offset, out, ReadMode::Blocking); };
    const auto answer = co_await services_.disk.run(std::move(job));
    if (!answer) co_return read;  // the disk threads are behind: a miss, not damage
    read = *answer;
  }
  if (!read) services_.cache.note_unreadable(found.key, found.disk->entry, read.error());
  co_return read;
}

/// Answers with the stored body under `head` (its own, or the freshened one). No: it could not be
/// read.
net::awaitable<Exchange::Served> Exchange::serve(Found& found, CacheStatus status, Outcome outcome,
                                                 std::shared_ptr<const cache::ObjectHead> head) {
  status.ttl = time_to_live(*head, now_);
  const bool in_memory = found.object && !found.from_disk;
  if (status.detail.empty()) status.detail = to_string(in_memory ? Detail::Memory : Detail::Disk);
  const bool is_current = found.object && found.object->head == head;
  if (in_memory && is_current && facts_.method == policy::Method::Get &&
      !found.object->on_disk.load(std::memory_order_relaxed)) {
    publish([&] {
      status.stored = services_.cache.promote(found.object);
      if (status.stored && found.marker) services_.cache.persist_marker(found.marker);
    });
  }

  std::string patched;
  append_age(patched, policy::current_age(head->facts, head->times, now_));
  detail_ = status.detail;
  append_cache_status(patched, status);

  if (head->status == 200 && policy::is_not_modified(request_.fields, head->facts, head->times)) {
    co_await send_not_modified(*head, patched);
    finish(outcome);
    co_return Served::Yes;
  }

  const std::uint64_t complete_bytes = found.body_bytes();
  const Selection selection = wants_parts_of(*head)
                                  ? select_parts(request_.fields, *head, complete_bytes)
                                  : select_whole(*head, complete_bytes);
  patched.append(selection.fields);
  const ResponseSink::Head response = head_of(selection, *head, patched);
  if (found.object || !response.has_body) {
    begin(response);
    bool is_sent = true;
    if (response.has_body) is_sent = co_await send_memory_body(*found.object, selection);
    if (is_sent) co_await sink_.finish();
  } else if (co_await send_disk_body(found, response, selection) == Served::No) {
    co_return Served::No;
  }
  finish(outcome);
  co_return Served::Yes;
}

net::awaitable<void> Exchange::send_not_modified(const cache::ObjectHead& head,
                                                 std::string_view patched) {
  const policy::FieldBlock fields = policy::not_modified_fields(head.fields);
  const ResponseSink::Head not_modified{.status = 304,
                                        .status_line = "HTTP/1.1 304 Not Modified\r\n",
                                        .ready = fields.text(),
                                        .patched = patched,
                                        .content_length = std::nullopt,
                                        .has_body = false};
  begin(not_modified);
  co_await sink_.finish();
}

/// Answers a Range request from what is kept in parts. Not: not all of it is there, or may be used;
/// `status` then says which.
net::awaitable<Exchange::Served> Exchange::serve_part(const Found& missing, CacheStatus& status) {
  const cache::ObjectPtr part = services_.cache.find_part(missing.key);
  const auto held = part ? cache::kept_range(*part->head, part->body_bytes) : std::nullopt;
  if (!held || !may_use_part(facts_, *part->head, now_)) co_return Served::Not;
  const HeadPtr head = cache::joined_head(*part->head, *part->head, std::nullopt);
  const std::uint64_t complete_bytes = *held->complete_bytes;
  Selection selection = select_parts(request_.fields, *head, complete_bytes);
  if (!lies_within(selection, held->range)) {
    status.forward = Forward::Partial;
    co_return Served::Not;
  }
  services_.cache.sight(missing.key, complete_bytes);
  CacheStatus hit;
  hit.ttl = time_to_live(*head, now_);
  hit.detail = to_string(Detail::Memory);
  detail_ = hit.detail;
  std::string patched;
  append_age(patched, policy::current_age(head->facts, head->times, now_));
  append_cache_status(patched, hit);
  patched.append(selection.fields);
  const ResponseSink::Head response = head_of(selection, *head, patched);
  begin(response);
  for (policy::ByteRange& range : selection.ranges) range.first -= held->range.first;
  const bool is_sent = co_await send_memory_body(*part, selection);
  if (is_sent) co_await sink_.finish();
  finish(Outcome::Hit);
  co_return Served::Yes;
}

/// Asks for the rest of a whole whose beginning is kept, under its strong entity tag (If-Range), so
/// that the two belong together. RFC 9111 3.3, 3.4. False: there is no beginning.
bool Exchange::plan_completion(FlightPlan& plan, const Found& missing) const {
  cache::ObjectPtr part = services_.cache.find_part(missing.key);
  const auto held = part ? cache::kept_range(*part->head, part->body_bytes) : std::nullopt;
  const auto range = held ? range_behind(held->range) : std::nullopt;
  if (!range) return false;
  plan.request.fields = policy::with_validators(plan.request.fields, {}, {});
  plan.request.fields.add("Range", *range);
  plan.request.fields.add("If-Range", part->head->facts.etag);
  plan.prefix = std::move(part);
  return true;
}

/// False: the client is gone.
net::awaitable<bool> Exchange::send_text(std::string_view text) {
  if (text.empty()) co_return true;
  const std::array<std::span<const std::byte>, 1> pieces{std::as_bytes(std::span(text))};
  const std::span<const std::span<const std::byte>> batch(pieces);
  const auto sent = co_await sink_.write(batch);
  co_return sent.has_value();
}

/// False: the client is gone.
net::awaitable<bool> Exchange::send_memory_body(const cache::Object& object,
                                                const Selection& selection) {
  bool is_sent = true;
  for (std::size_t i = 0; is_sent && i < selection.ranges.size(); ++i) {
    const std::string_view preface = selection.preface(i);
    if (!preface.empty()) is_sent = co_await send_text(preface);
    if (is_sent) is_sent = co_await send_memory_range(object, selection.ranges[i]);
  }
  if (is_sent && !selection.closing.empty()) is_sent = co_await send_text(selection.closing);
  co_return is_sent;
}

net::awaitable<bool> Exchange::send_memory_range(const cache::Object& object,
                                                 policy::ByteRange range) {
  constexpr std::size_t kPieces = 32;
  std::array<std::span<const std::byte>, kPieces> pieces;
  std::size_t count = 0;
  std::uint64_t first = 0;
  for (const cache::ChunkPtr& chunk : object.body) {
    const std::uint64_t from = std::max(first, range.first);
    const std::uint64_t to = std::min(first + chunk->size(), range.end());
    if (from < to) {
      pieces[count++] = std::span(*chunk).subspan(from - first, to - from);
    }
    first += chunk->size();
    if (count == kPieces) {
      const std::span<const std::span<const std::byte>> batch(pieces.data(), count);
      if (const auto sent = co_await sink_.write(batch); !sent) co_return false;
      count = 0;
    }
  }
  if (count > 0) {
    const std::span<const std::span<const std::byte>> batch(pieces.data(), count);
    if (const auto sent = co_await sink_.write(batch); !sent) co_return false;
  }
  note_sent(range.size);
  co_return true;
}

/// No: not even the first slice could be read, nothing was sent. What is lost later is asked of the
/// origin, or the response is cut: a wrong byte is never sent.
net::awaitable<Exchange::Served> Exchange::send_disk_body(Found& found,
                                                          const ResponseSink::Head& head,
                                                          const Selection& selection) {
  std::uint64_t largest_bytes = 0;
  for (const auto& range : selection.ranges) largest_bytes = std::max(largest_bytes, range.size);
  std::vector<std::byte> slice(std::min<std::uint64_t>(largest_bytes, kSliceBytes));
  bool begun = false;
  for (std::size_t i = 0; i < selection.ranges.size(); ++i) {
    std::uint64_t offset = selection.ranges[i].first;
    const std::uint64_t end = selection.ranges[i].end();
    bool is_prefaced = false;
    while (offset < end) {
      const auto size = std::min<std::uint64_t>(end - offset, slice.size());
      const std::span<std::byte> out = std::span(slice).first(size);
      const auto read = co_await read_slice(found, offset, out);
      if (!read && !begun) co_return Served::No;
      if (!begun) begin(head);
      begun = true;
      if (!std::exchange(is_prefaced, true)) {
        if (!co_await send_text(selection.preface(i))) co_return Served::Yes;
      }
      if (!read) {
        if (co_await send_rest(*found.head(), offset, end)) break;
        services_.counters.cut_bodies.add();
        sink_.abort();
        co_return Served::Yes;
      }
      const std::array<std::span<const std::byte>, 1> pieces{out};
      const std::span<const std::span<const std::byte>> batch(pieces);
      if (const auto sent = co_await sink_.write(batch); !sent) co_return Served::Yes;
      note_sent(size);
      offset += size;
    }
  }
  if (!begun) begin(head);
  if (co_await send_text(selection.closing)) co_await sink_.finish();
  co_return Served::Yes;
}

net::awaitable<bool> Exchange::send_rest(const cache::ObjectHead& head, std::uint64_t first,
                                         std::optional<std::uint64_t> end) {
  const CacheKey key = services_.sites.primary_key(request_.host, request_.target, request_.fields);
  OriginRequest request{.method = request_.method,
                        .target = services_.sites.forwarded_target(request_.host, request_.target),
                        .fields = forwarded_fields(request_),
                        .body = nullptr,
                        .content_length = std::nullopt};
  RestOfBody rest(services_, key, std::move(request), request_.fields, head, first, end);
  if (!co_await rest.open()) co_return false;
  services_.counters.continued_bodies.add();
  std::uint64_t left_bytes = end ? *end - first : UINT64_MAX;
  while (left_bytes > 0) {
    const auto pieces = co_await rest.next();
    if (!pieces) co_return false;
    if (pieces->empty()) break;
    if (const auto sent = co_await sink_.write(*pieces); !sent) co_return false;
    for (const auto& piece : *pieces) {
      note_sent(piece.size());
      left_bytes -= std::min<std::uint64_t>(left_bytes, piece.size());
    }
  }
  co_return true;
}

/// A stale response instead of an error, where it may be; the origin is then spared for a while.
/// RFC 5861 4, RFC 9111 4.2.4. `failure`: why no response came; empty: one came, its status is in
/// `status`.
net::awaitable<Exchange::Served> Exchange::fall_back(Found& found, CacheStatus status,
                                                     std::string_view failure) {
  if (!may_stand_in(found)) co_return Served::No;
  services_.flights.note_failing(found.key.fingerprint(), services_.clock.steady());
  status.detail = failure;
  co_return co_await serve_stale(found, status);
}

net::awaitable<Exchange::Served> Exchange::serve_stale(Found& found, CacheStatus status) {
  status.stored = false;
  status.collapsed.reset();
  auto head = found.head();
  co_return co_await serve(found, status, Outcome::StaleHit, std::move(head));
}

}  // namespace secondsight::proxy
