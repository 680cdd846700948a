#include "proxy/flight.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cache/partial.h"
#include "cache/policy/hop_by_hop.h"
#include "cache/policy/read_facts.h"
#include "cache/policy/validation.h"
#include "config/check.h"
#include "proxy/counters.h"
#include "proxy/exchange_rules.h"
#include "proxy/response.h"

namespace secondsight::proxy {
namespace {

using cache::policy::Storability;

/// How long a fill waits for a writer that writes nothing. Longer than a disk's worst pause,
/// shorter than a client's patience (proxy.body_timeout).
constexpr std::chrono::seconds kWriterPatience{5};
/// What of a fill stays in memory for readers that are not quite as fast as the origin. What is
/// read behind it comes from disk, and may be lost there: a disk that others filled gives up
/// segments.
constexpr std::uint64_t kFillWindowBytes = 2U << 20;
/// Neighbouring pieces become one up to this size; not above the smallest part of a fill.
constexpr std::uint64_t kMergedBytesMax = 64U << 10;

/// Adds a piece at the end. A body that dribbles in would cost many times its bytes in pieces:
/// neighbours are merged while the older one is at most twice as large, so that the sizes of a run
/// of small ones fall by half, and no byte is copied more often than they can.
template <class Pieces>
void add_piece(Pieces& pieces, cache::ChunkPtr chunk) {
  while (!pieces.empty() && pieces.back()->size() <= 2 * chunk->size() &&
         pieces.back()->size() + chunk->size() <= kMergedBytesMax) {
    auto merged = std::make_shared<cache::Chunk>();
    merged->reserve(pieces.back()->size() + chunk->size());
    merged->insert(merged->end(), pieces.back()->begin(), pieces.back()->end());
    merged->insert(merged->end(), chunk->begin(), chunk->end());
    pieces.pop_back();
    chunk = std::move(merged);
  }
  pieces.push_back(std::move(chunk));
}

}  // namespace

Flight::Flight(WorkerServices& services, FlightPlan plan)
    : services_(services),
      flights_(services.flights),
      plan_(std::move(plan)),
      invalidations_(
          plan_.invalidations.value_or(flights_.invalidations(plan_.primary.fingerprint()))),
      purges_seen_(plan_.purges_seen.value_or(services.cache.purges())) {}

Flight::~Flight() {
  flights_.release_whole(reserved_bytes_);
}

void Flight::begin(FlightReader* leader) {
  request_sent_ = services_.clock.wall();
  if (leader != nullptr) {
    const std::lock_guard lock(mutex_);
    leader->leader_ = true;
    leader->flight_ = shared_from_this();
    readers_.push_back(leader);
  }
  self_ = shared_from_this();
  if (services_.stopping) return end(OriginError::Cancelled);
  services_.running.insert(this);
  fetch_ = services_.origin.start(plan_.request, *this);
}

bool Flight::is_outdated() const {
  const std::lock_guard lock(mutex_);
  return is_outdated(head_.get());
}

bool Flight::is_outdated(const cache::ObjectHead* head) const {
  return flights_.invalidations(plan_.primary.fingerprint()) != invalidations_ ||
         services_.cache.is_purged(purges_seen_, plan_.key, head);
}

bool Flight::join(FlightReader& reader) {
  const std::lock_guard lock(mutex_);
  if (mode_ == Mode::Passing || mode_ == Mode::Ended || !plan_.shared || is_outdated(head_.get()))
    return false;
  if (mode_ == Mode::Filling && window_first_ > 0 && !fill_->has_beginning()) return false;
  reader.flight_ = shared_from_this();
  readers_.push_back(&reader);
  if (mode_ == Mode::Waiting) return true;
  if (!may_share(reader) || !count_sighting(reader)) {
    readers_.pop_back();
    reader.flight_ = nullptr;
    return false;
  }
  deliver_head(reader);
  return true;
}

void Flight::tick(SteadyTime now) {
  {
    const std::lock_guard lock(mutex_);
    if (mode_ != Mode::Filling || !paused_) return;
    const std::uint64_t written = fill_->written_bytes();
    if (stalled_since_ == SteadyTime{} || written != stalled_at_bytes_) {
      stalled_since_ = now;
      stalled_at_bytes_ = written;
    }
    if (now - stalled_since_ < kWriterPatience) return;
    give_up_fill();
    start_passing();
  }
  look_after();
}

void Flight::cancel() {
  end(OriginError::Cancelled);
}

// ---------------------------------------------------------------- the origin's callbacks

/// Kept until the flight ends for who waits for the head and has not sent it on yet.
void Flight::on_interim(OriginHead&& head) {
  const std::lock_guard lock(mutex_);
  if (readers_.empty() || interim_.size() == kInterimHeadsMax) return;
  interim_.push_back(std::make_shared<const std::string>(interim_head(head)));
  notify_readers();
}

void Flight::on_head(OriginHead&& head) {
  if (head.status == 304 && plan_.stale) return handle_not_modified(head);
  if (head.status == 304 && plan_.asks_about_variants) {
    return answer_all(Arrival::OtherVariant,
                      make_object_head(head, {request_sent_, services_.clock.wall()}));
  }

  std::shared_ptr<const cache::ObjectHead> object_head;
  if (plan_.prefix && (head.status == 206 || head.status == 416)) {
    object_head = complete_prefix(head);
    if (!object_head) {  // not what was asked for: everyone looks again, without the beginning
      services_.cache.forget_part(plan_.key);
      return end(OriginError::Cancelled);
    }
  } else {
    if (std::exchange(plan_.prefix, nullptr)) services_.cache.forget_part(plan_.key);
    object_head = make_object_head(head, {request_sent_, services_.clock.wall()});
  }
  const auto& facts = object_head->facts;
  const bool is_hidden_error = cache::policy::is_error_to_hide(head.status) && plan_.hides_errors;
  if (is_hidden_error && plan_.is_behind)
    flights_.note_failing(plan_.key.fingerprint(), services_.clock.steady());
  Storability storable = cache::policy::storability(plan_.facts, facts);
  if (storable == Storability::Storable && is_hidden_error) storable = Storability::Status;
  if (storable == Storability::Storable && is_outdated(object_head.get()))
    storable = Storability::Outdated;
  if (storable == Storability::Storable && !plan_.may_store) storable = Storability::Method;
  if (storable == Storability::Storable &&
      cache::policy::is_stale_for_good(facts, object_head->times, {},
                                       object_head->times.response_received)) {
    storable = Storability::NoLifetime;
  }
  if (plan_.counts_for_whole && head.status == 206) {
    auto whole = facts;
    whole.status = 200;
    if (cache::policy::storability(plan_.facts, whole) == Storability::Storable) {
      const auto sighting = services_.cache.sight(plan_.key, std::nullopt);
      is_part_ = may_keep_part(*object_head, head);
      if (is_part_) admitted_ = sighting.admitted;
    }
  }
  cache::CacheKey key = plan_.key;
  if (storable == Storability::Storable) {
    // Whoever waits could use none of what has to be validated first: they are not lined up again.
    const bool is_for_others = cache::policy::choose_use({}, facts, object_head->times, kHeuristic,
                                                         object_head->times.response_received) !=
                               cache::policy::Use::Validate;
    if (is_for_others) {
      flights_.note_cacheable(plan_.primary.fingerprint());
    } else if (plan_.shared) {
      flights_.note_uncacheable(plan_.primary.fingerprint(), services_.clock.steady());
    }
    auto placement =
        services_.cache.place(plan_.primary, plan_.vary_marker, plan_.fields, *object_head);
    key = std::move(placement.key);
    marker_ = std::move(placement.marker);
  } else if (plan_.shared) {
    flights_.note_uncacheable(plan_.primary.fingerprint(), services_.clock.steady());
    // (Of what is outdated nobody knows whether what is stored now is older.)
    const bool replaces = plan_.has_stored && storable != Storability::Outdated;
    if (replaces && head.status < 500) forget(plan_.primary, plan_.vary_marker);
  }
  // A part may be of another version than the whole that goes by.
  if (head.status == 200 && !plan_.prefix) services_.cache.forget_part(plan_.key);

  if (!head.content_length) connection_options_ = connection_options(head);  // trailers may follow
  std::string trailer_names = announced_trailers(head);
  bool abandoned = false;
  {
    const std::lock_guard lock(mutex_);
    head_ = std::move(object_head);
    content_length_ = head.content_length;
    trailer_names_ = std::move(trailer_names);
    storability_ = storable;
    if (storable == Storability::Storable) {
      stored_key_ = std::move(key);
      settle_sightings();
    } else if (is_part_) {
      storability_ = Storability::Storable;
      stored_key_ = plan_.key;
      for (FlightReader* reader : readers_) reader->detail_ = cache::Detail::Part;
    }
    choose_mode();
    if (mode_ == Mode::Passing && plan_.shared)  // too large, or nowhere to go
      flights_.note_uncacheable(plan_.primary.fingerprint(), services_.clock.steady());
    if (plan_.prefix)
      for (const cache::ChunkPtr& chunk : plan_.prefix->body) take_body(*chunk);
    for (FlightReader* reader : readers_) deliver_head(*reader);
    notify_readers();
    abandoned = is_abandoned();
  }
  if (abandoned) end(OriginError::Cancelled);
}

void Flight::on_trailer(cache::policy::FieldLine field) {
  const auto is_field = [&](const std::string& name) {
    return cache::policy::equals_ignoring_case(name, field.name);
  };
  if (std::any_of(connection_options_.begin(), connection_options_.end(), is_field)) return;
  const std::lock_guard lock(mutex_);
  trailers_.add(field.name, field.value);
}

OriginReceiver::Flow Flight::on_body(std::span<const std::byte> bytes) {
  bool abandoned = false;
  Flow flow = Flow::Go;
  {
    const std::lock_guard lock(mutex_);
    take_body(bytes);
    abandoned = is_abandoned();  // it outgrew what can be kept, and nobody reads it
    paused_ = should_pause();
    if (paused_) flow = Flow::Pause;
  }
  if (abandoned) end(OriginError::Cancelled);
  return flow;
}

void Flight::take_body(std::span<const std::byte> bytes) {
  const std::size_t chunk_bytes_max =
      mode_ == Mode::Filling ? services_.cache.fill_part_bytes() : bytes.size();
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(bytes.size(), chunk_bytes_max));
    bytes = bytes.subspan(piece.size());
    auto chunk = std::make_shared<const cache::Chunk>(piece.begin(), piece.end());
    add_piece(window_, chunk);
    end_ += chunk->size();
    if (mode_ == Mode::Filling) gather(chunk);
  }
  // Of a length that was not announced.
  const std::uint64_t whole_bytes_max = services_.cache.whole_body_bytes_max();
  if (mode_ == Mode::Whole && (end_ > reserved_bytes_ || end_ > whole_bytes_max)) {
    // The reservation grows with the body, as long as it may.
    const std::uint64_t more =
        std::max<std::uint64_t>(end_ - std::min(end_, reserved_bytes_), 64U << 10);
    if (end_ <= whole_bytes_max && flights_.reserve_whole(more)) {
      reserved_bytes_ += more;
    } else if (!start_filling()) {
      start_passing();
    }
  } else if (mode_ == Mode::Filling && end_ > services_.cache.stored_body_bytes_max()) {
    give_up_fill();
    start_passing();
  }
  trim();
  notify_readers();
}

void Flight::on_done(OriginError error) {
  if (error != OriginError::None) return end(error);
  // Of a completed part the length is not the fetch's own.
  if (content_length_ && mode_ != Mode::Ended && head_->status != 304 &&
      plan_.request.method != "HEAD" && end_ != *content_length_) {
    return end(OriginError::Truncated);
  }
  bool whole = false;
  bool committing = false;
  bool released = false;
  {
    const std::lock_guard lock(mutex_);
    if (mode_ == Mode::Whole) whole = true;
    if (mode_ == Mode::Filling && !fill_->failed()) {
      if (part_bytes_ > 0) hand_over_part();
      committing_ = committing = publish([&] {
        if (marker_) services_.cache.persist_marker(marker_);
        services_.cache.commit(fill_, head_);
      });
    }
    if (!committing) {
      give_up_fill();
      released = true;
    }
  }
  if (whole) publish([&] { is_part_ ? keep_part() : keep_whole(); });
  if (plan_.prefix) services_.cache.forget_part(plan_.key);  // the whole stands in its place
  if (released) leave_table();                               // after it can be found in the cache
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    notify_readers();
  }
  services_.running.erase(this);
  fetch_.reset();
  const auto keep_alive = std::move(self_);
}

/// No body follows, and nobody joins any more.
void Flight::answer_all(Arrival arrival, std::shared_ptr<const cache::ObjectHead> head) {
  const std::lock_guard lock(mutex_);
  head_ = std::move(head);
  mode_ = Mode::Ended;
  const std::vector<FlightReader*> waiting = readers_;
  for (FlightReader* reader : waiting) {
    if (arrival == Arrival::NotModified && !may_share(*reader)) {
      release(*reader);
      continue;
    }
    reader->arrived_ = true;
    reader->arrival_ = arrival;
    reader->head_ = head_;
  }
  notify_readers();
}

void Flight::end(OriginError error) {
  if (plan_.is_behind && error != OriginError::Cancelled)
    flights_.note_failing(plan_.key.fingerprint(), services_.clock.steady());
  leave_table();
  {
    const std::lock_guard lock(mutex_);
    give_up_fill();
    for (FlightReader* reader : readers_) {
      if (reader->arrived_) continue;
      reader->arrived_ = true;
      reader->error_ = error;
      // Nobody but the leader waited for this very fetch: if it was given up, they look again.
      reader->arrival_ = error == OriginError::Cancelled ? Arrival::Released : Arrival::Failed;
    }
    if (!done_) {
      error_ = error;
      done_ = true;
      mode_ = mode_ == Mode::Waiting ? Mode::Ended : mode_;
      if (mode_ != Mode::Ended) mode_ = Mode::Passing;  // nobody joins a broken body
    }
    notify_readers();
  }
  services_.running.erase(this);
  fetch_.reset();
  const auto keep_alive = std::move(self_);
}

// ---------------------------------------------------------------- decisions, with mutex_ held

void Flight::settle_sightings() {
  if (readers_
          .empty()) {  // revalidation behind a stale answer: that answer's request is the sighting
    admitted_ = services_.cache.sight(*stored_key_, content_length_).admitted;
    return;
  }
  for (std::size_t i = 0; i < readers_.size();) {
    FlightReader* reader = readers_[i];
    if (may_share(*reader) && count_sighting(*reader)) {
      ++i;
      continue;
    }
    release(*reader);
  }
}

/// False: this response is not for that request (another variant, or not shared any more).
bool Flight::count_sighting(FlightReader& reader) {
  if (marker_ && !reader.leader_ &&
      services_.cache.variant_key(plan_.primary, *marker_, reader.fields_).text() !=
          stored_key_->text()) {
    return false;
  }
  const cache::Sighting sighting = services_.cache.sight(*stored_key_, content_length_);
  reader.detail_ = sighting.detail;
  if (sighting.admitted && !admitted_) admitted_ = sighting.admitted;
  return true;
}

/// Whether what was fetched for another may answer this request, too, without being validated. RFC
/// 9111 4: as if it had been stored already.
bool Flight::may_share(const FlightReader& reader) const {
  return reader.leader_ ||
         cache::policy::choose_use(reader.facts_, head_->facts, head_->times, kHeuristic,
                                   reader.services_.clock.wall()) != cache::policy::Use::Validate;
}

void Flight::choose_mode() {
  const bool storable = storability_ == Storability::Storable;
  if (!storable) return start_passing();
  const std::uint64_t expected_bytes = content_length_.value_or(0);
  if (expected_bytes <= services_.cache.whole_body_bytes_max() &&
      flights_.reserve_whole(expected_bytes)) {
    reserved_bytes_ = expected_bytes;
    mode_ = Mode::Whole;
    return;
  }
  if (!start_filling()) start_passing();
}

bool Flight::start_filling() {
  if (is_part_) return false;
  const std::uint64_t bytes = std::max(end_, content_length_.value_or(0));
  if (!admitted_ || is_outdated(head_.get()) || bytes > services_.cache.stored_body_bytes_max())
    return false;
  cache::Detail refusal = cache::Detail::None;
  fill_ = services_.cache.begin_fill(
      *admitted_, *stored_key_, purges_seen_,
      [weak = weak_from_this()] {
        if (const auto flight = weak.lock()) flight->progress();
      },
      refusal);
  if (!fill_) {
    for (FlightReader* reader : readers_)
      if (!reader->arrived_) reader->detail_ = refusal;  // later it is its own worker's
    return false;
  }
  mode_ = Mode::Filling;
  release_reservation();
  for (const auto& chunk : window_) gather(chunk);
  return true;
}

/// The writer has its last word about the fill: its reservation in the queue ends.
void Flight::give_up_fill() {
  if (!fill_ || committing_ || fill_given_up_) return;
  fill_given_up_ = true;
  services_.cache.abandon(fill_);
}

void Flight::release_reservation() {
  flights_.release_whole(std::exchange(reserved_bytes_, 0));
}

void Flight::start_passing() {
  mode_ = Mode::Passing;
  release_reservation();
  if (fill_) return;  // its readers were promised the body: they stay, and set the pace together
  if (end_ > 0) return;
  for (std::size_t i = 0; i < readers_.size();) {
    if (readers_[i]->leader_) {
      ++i;
    } else {
      release(*readers_[i]);
    }
  }
}

void Flight::deliver_head(FlightReader& reader) {
  reader.arrived_ = true;
  reader.arrival_ = Arrival::Head;
  reader.head_ = head_;
  reader.content_length_ = content_length_;
  reader.trailer_names_ = trailer_names_;
  reader.storability_ = storability_;
  const bool in_memory = admitted_ || services_.settings.cache.memory_bytes > 0;
  reader.kept_ =
      !is_outdated(head_.get()) && (mode_ == Mode::Filling || (mode_ == Mode::Whole && in_memory));
}

void Flight::release(FlightReader& reader) {
  reader.arrived_ = true;
  reader.arrival_ = Arrival::Released;
  reader.signal_->notify();
  std::erase(readers_, &reader);
}

void Flight::gather(const cache::ChunkPtr& chunk) {
  const std::uint64_t part_bytes_max = services_.cache.fill_part_bytes();
  CHECK(chunk->size() <= part_bytes_max);
  if (part_bytes_ + chunk->size() > part_bytes_max) hand_over_part();
  add_piece(part_, chunk);
  part_bytes_ += chunk->size();
}

void Flight::hand_over_part() {
  services_.cache.append(fill_, std::exchange(part_, {}), part_bytes_);
  part_bytes_ = 0;
}

/// Lets go of what nobody needs any more.
void Flight::trim() {
  std::uint64_t keep_from = window_first_;
  if (mode_ == Mode::Passing) keep_from = slowest_position();
  if (mode_ == Mode::Filling) {
    // Slow readers find it on disk; a stretch is kept so that most never have to.
    const std::uint64_t kept_bytes =
        std::max(services_.settings.origin.flight_buffer, kFillWindowBytes);
    const std::uint64_t recent = end_ - std::min(end_, kept_bytes);
    keep_from = std::min(fill_->written_bytes(), std::max(slowest_position(), recent));
  }
  while (!window_.empty() && window_first_ + window_.front()->size() <= keep_from) {
    window_first_ += window_.front()->size();
    window_.pop_front();
  }
}

bool Flight::should_pause() const {
  switch (mode_) {
    case Mode::Filling:
      return fill_->waiting_bytes() + part_bytes_ >= 2 * services_.cache.fill_part_bytes();
    case Mode::Passing:
      return end_ - slowest_position() >= services_.settings.origin.flight_buffer;
    default:
      return false;
  }
}

std::uint64_t Flight::slowest_position() const {
  std::uint64_t slowest = end_;
  for (const FlightReader* reader : readers_) slowest = std::min(slowest, reader->position_);
  return slowest;
}

/// Nobody reads and nothing is kept; and a client's body is never read on behalf of nobody.
bool Flight::is_abandoned() const {
  return readers_.empty() && !done_ && (mode_ == Mode::Passing || plan_.request.body != nullptr);
}

void Flight::notify_readers() {
  for (FlightReader* reader : readers_) reader->signal_->notify();
}

// ---------------------------------------------------------------- the rest of its life

void Flight::leave(FlightReader& reader) {
  bool abandoned = false;
  {
    const std::lock_guard lock(mutex_);
    std::erase(readers_, &reader);
    abandoned = is_abandoned();
    if (!abandoned && done_) return;
  }
  if (reader.leader_) return look_after();  // its worker is the owner's
  progress();
}

void Flight::consumed(FlightReader& reader, std::uint64_t bytes) {
  consumed_to(reader, reader.position_ + bytes);
}

void Flight::consumed_to(FlightReader& reader, std::uint64_t position) {
  bool stir = false;
  {
    const std::lock_guard lock(mutex_);
    reader.position_ = position;
    trim();
    stir = paused_ && !should_pause();
  }
  if (!stir) return;
  if (reader.leader_) return look_after();
  progress();
}

void Flight::progress() {
  {
    const std::lock_guard lock(mutex_);
    if (!done_) {  // so its worker stands: cancel() comes before the worker's end and waits here
      net::post(services_.io, [self = shared_from_this()] { self->look_after(); });
      return;
    }
    if (!fill_ || !(fill_->committed() || fill_->failed())) return;
  }
  leave_table();
}

void Flight::look_after() {
  bool abandoned = false;
  bool resumed = false;
  bool committed = false;
  {
    const std::lock_guard lock(mutex_);
    if (fill_ && mode_ == Mode::Filling && fill_->failed()) {
      if (committing_) {
        committed = true;
      } else {
        give_up_fill();
        start_passing();
      }
    }
    committed = committed || (committing_ && fill_->committed());
    trim();
    abandoned = is_abandoned();
    if (paused_ && !should_pause()) {
      paused_ = false;
      stalled_since_ = {};
      resumed = true;
    }
  }
  if (committed) leave_table();
  if (abandoned) return end(OriginError::Cancelled);
  if (resumed && fetch_) fetch_->resume();
}

void Flight::leave_table() {
  if (plan_.shared) flights_.remove(plan_.key.fingerprint(), *this);
}

}  // namespace secondsight::proxy
