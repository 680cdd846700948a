#include "loadtest/simulate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "admission/admission_policy.h"
#include "cache/disk_store.h"
#include "cache/index.h"
#include "cache/log/object_log.h"
#include "cache/log/record_format.h"
#include "cache/log/segment_format.h"
#include "cache/memory_tier.h"
#include "cache/object.h"
#include "cache/policy/read_facts.h"
#include "cache/purge_list.h"
#include "config/check.h"
#include "config/metrics.h"
#include "loadtest/origin_response.h"
#include "loadtest/sparse_file_system.h"
#include "loadtest/workload_options.h"

namespace secondsight::loadtest {
namespace {

using admission::Verdict;
using cache::ChunkPtr;
using cache::Index;
using cache::log::ObjectLog;

constexpr std::string_view kHost = "edge.test";  // as long as the demo's

/// Of one length, so that every run has the same fingerprints.
admission::FingerprintSeed fixed_seed() {
  admission::FingerprintSeed::Bytes bytes{};
  bytes.fill(std::byte{0x5E});
  return admission::FingerprintSeed(bytes);
}

/// The head that the demo's origin would send, as a proxy keeps it.
std::shared_ptr<const cache::ObjectHead> typical_head() {
  constexpr std::chrono::hours kMaxAge{24 * 365};
  OriginRequestHead request;
  request.method = "GET";
  request.target = "/o/key/16384";
  const OriginResponse response = answer(request, kMaxAge, WallTime{});
  const std::string_view text = response.head;
  const std::size_t fields_at = text.find("\r\n") + 2;
  auto fields = cache::policy::FieldBlock::from_text(
      text.substr(fields_at, text.size() - fields_at - std::string_view("\r\n").size()));
  CHECK(fields.has_value());
  auto head = std::make_shared<cache::ObjectHead>();
  head->status = response.status;
  head->reason = "OK";
  head->fields = std::move(*fields);
  head->facts = cache::policy::read_facts(head->status, head->fields, WallTime{});
  return head;
}

/// Bodies of zeros that share their pieces. One piece up to a limit, as what is read from disk or
/// joined is; larger ones as they come from an origin.
class ZeroBodies {
 public:
  std::vector<ChunkPtr> body(std::uint64_t bytes) {
    std::vector<ChunkPtr> chunks;
    for (; bytes > kPieceBytes; bytes -= kPieceBytes) chunks.push_back(piece_);
    if (bytes > 0) chunks.push_back(std::make_shared<const cache::Chunk>(bytes));
    return chunks;
  }

 private:
  static constexpr std::uint64_t kPieceBytes = 64_KiB;
  ChunkPtr piece_ = std::make_shared<const cache::Chunk>(kPieceBytes);
};

/// What all objects of a plan have in common, and their keys.
class Objects {
 public:
  explicit Objects(const Plan& plan) : plan_(plan) {
    keys_.reserve(plan.objects.size());
    for (const PlannedObject& object : plan.objects)
      keys_.push_back(cache::CacheKey::primary("http", kHost, object.target, seed_));
  }

  const admission::FingerprintSeed& seed() const noexcept { return seed_; }
  const std::shared_ptr<const cache::ObjectHead>& head() const noexcept { return head_; }
  const cache::CacheKey& key(std::uint32_t object) const { return keys_[object]; }
  std::uint64_t body_bytes(std::uint32_t object) const { return plan_.objects[object].size_bytes; }
  std::shared_ptr<cache::Object> fetch(std::uint32_t object) {
    const std::uint64_t bytes = body_bytes(object);
    return std::make_shared<cache::Object>(keys_[object], head_, bodies_.body(bytes), bytes);
  }

 private:
  const Plan& plan_;
  const admission::FingerprintSeed seed_ = fixed_seed();
  const std::shared_ptr<const cache::ObjectHead> head_ = typical_head();
  ZeroBodies bodies_;
  std::vector<cache::CacheKey> keys_;
};

/// A policy whose maintenance runs as often as the trace's clock says, gaps included.
class TimedPolicy {
 public:
  explicit TimedPolicy(const AdmissionSettings& settings)
      : policy_(admission::make_policy(settings, SteadyTime{}, kDrawSeed)),
        step_(std::max<SteadyTime::duration>(settings.window / kStepsPerWindow,
                                             std::chrono::milliseconds{1})) {}

  void advance_to(double seconds) {
    const SteadyTime now{std::chrono::nanoseconds(std::llround(seconds * 1e9))};
    for (SteadyTime at = now_ + step_; at < now; at += step_) policy_->maintain(at);
    policy_->maintain(now);
    now_ = now;
  }
  admission::FilterStatus status() const noexcept { return policy_->status(now_); }
  admission::AdmissionPolicy& policy() noexcept { return *policy_; }

 private:
  // A sweep takes 64 calls, and must have ended before the next rotation is due.
  static constexpr int kStepsPerWindow = 256;
  static constexpr std::uint64_t kDrawSeed = 0x5EED;  // every run draws the same
  std::unique_ptr<admission::AdmissionPolicy> policy_;
  SteadyTime::duration step_;
  SteadyTime now_{};
};

/// The order of use is that of Cache, Exchange and Flight.
class SimulatedCache {
 public:
  SimulatedCache(Objects& objects, const AdmissionSettings& admission,
                 const SimulatedCacheSizes& sizes)
      : objects_(objects), sizes_(sizes), policy_(admission), purges_(objects.seed()) {
    if (sizes.memory_bytes > 0) memory_ = std::make_unique<cache::MemoryTier>(sizes.memory_bytes);
    if (sizes.disk_bytes == 0) return;
    auto log = ObjectLog::open(files_,
                               {.capacity_bytes = sizes.disk_bytes,
                                .segment_bytes = ObjectLog::segment_bytes_for(sizes.disk_bytes),
                                .seed_id = objects.seed().id()},
                               [](const auto&, auto, const auto&) {});
    if (!log) throw RunError("the simulated log: " + log.error().message());
    log_ = std::move(*log);
    store_ = std::make_unique<cache::DiskStore>(*log_, index_, memory_.get(), purges_, metrics_);
  }

  void request(std::uint32_t object, double time_seconds) {
    policy_.advance_to(time_seconds);
    if (serve_from_memory(object)) {
      ++result_.memory_hits;
      result_.hit_bytes += objects_.body_bytes(object);
    } else if (serve_from_disk(object)) {
      ++result_.disk_hits;
      result_.hit_bytes += objects_.body_bytes(object);
    } else {
      fetch(object);
    }
    if (memory_) result_.memory_bytes_peak = std::max(result_.memory_bytes_peak, memory_->bytes());
    if (log_) result_.disk_bytes_peak = std::max(result_.disk_bytes_peak, log_->bytes_on_disk());
  }

  SimulationResult result() {
    SimulationResult result = result_;
    const admission::FilterStatus status = policy_.status();
    result.admission_bytes = status.memory_bytes;
    result.rotations_by_age = status.rotations_by_age;
    result.rotations_by_fill = status.rotations_by_fill;
    if (!log_) return result;
    const cache::log::LogCounters counters = log_->counters();
    result.written_bytes = counters.record_bytes + counters.footer_bytes + counters.header_bytes;
    result.admitted_bytes = written_bytes("admitted");
    result.reappended_bytes = written_bytes("reappended");
    return result;
  }

 private:
  bool serve_from_memory(std::uint32_t object) {
    const cache::ObjectPtr found = memory_ ? memory_->find(objects_.key(object)) : nullptr;
    if (!found) return false;
    // Cache::promote().
    if (!store_ || found->on_disk.exchange(true, std::memory_order_relaxed)) return true;
    auto& policy = policy_.policy();
    const Verdict verdict = policy.sight(found->key.fingerprint(), found->body_bytes);
    found->on_disk.store(verdict == Verdict::Never, std::memory_order_relaxed);
    if (policy.admits_known(verdict) && found->body_bytes <= stored_body_bytes_max()) write(*found);
    return true;
  }

  bool serve_from_disk(std::uint32_t object) {
    const cache::CacheKey& key = objects_.key(object);
    const auto entry = index_.find(key.fingerprint());
    if (!entry) return false;
    const auto reader = log_->open_object(entry->location, ReadMode::Blocking);
    if (!reader) {  // parts of it were reclaimed
      index_.erase_at(key.fingerprint(), entry->location);
      return false;
    }
    CHECK((*reader)->head().key == key.text());
    if (objects_.body_bytes(object) <= kWholeReadBytesMax && memory_) {
      const auto copy = objects_.fetch(object);
      copy->on_disk.store(true, std::memory_order_relaxed);
      memory_->insert(copy, cache::Newcomer::SeenBefore);
    }
    // Cache::note_disk_hit().
    policy_.policy().sight(key.fingerprint(), std::nullopt);
    index_.note_hit(key.fingerprint());
    return true;
  }

  void fetch(std::uint32_t object) {
    const cache::CacheKey& key = objects_.key(object);
    const std::uint64_t bytes = objects_.body_bytes(object);
    const bool is_admitted = admission::admits(policy_.policy().sight(key.fingerprint(), bytes));
    const bool is_written = store_ && is_admitted && bytes <= stored_body_bytes_max();
    if (bytes > whole_body_bytes_max()) {
      if (is_written) fill(object);
      return;
    }
    const auto fetched = objects_.fetch(object);
    if (is_written) {
      fetched->on_disk.store(true, std::memory_order_relaxed);
      write(*fetched);
    }
    if (memory_)
      memory_->insert(fetched, is_admitted ? cache::Newcomer::SeenBefore : cache::Newcomer::First);
  }

  void write(const cache::Object& object) {
    const auto entry = store_->write(object);
    object.on_disk.store(entry.has_value(), std::memory_order_relaxed);
    if (entry) index_.insert(object.key.fingerprint(), *entry);
  }

  /// In parts, as a body that streams past.
  void fill(std::uint32_t object) {
    constexpr std::uint64_t kFillPartBytes = 1_MiB;
    const auto fetched = objects_.fetch(object);
    const std::uint64_t part_bytes_max =
        std::min<std::uint64_t>(kFillPartBytes, log_->part_body_bytes_max());
    std::vector<cache::log::PartRef> parts;
    for (std::uint64_t first = 0; first < fetched->body_bytes; first += part_bytes_max) {
      const std::uint64_t size = std::min(part_bytes_max, fetched->body_bytes - first);
      const auto part = store_->write_part(fetched->key, fetched->body, first, size);
      if (!part) return;
      parts.push_back(*part);
    }
    const auto entry = store_->write_head(fetched->key, *objects_.head(), parts);
    if (entry) index_.insert(fetched->key.fingerprint(), *entry);
  }

  /// As Cache::stored_body_bytes_max().
  std::uint64_t stored_body_bytes_max() const noexcept {
    return std::min(sizes_.max_object, sizes_.disk_bytes / 2);
  }
  /// About Cache::whole_body_bytes_max().
  std::uint64_t whole_body_bytes_max() const noexcept {
    return memory_ ? memory_->object_bytes_max() : kWholeReadBytesMax;
  }
  std::uint64_t written_bytes(const char* cause) {
    return metrics_
        .counter("secondsight_written_bytes_total",
                 "Bytes handed to the disk cache's file system, by cause.", {{"cause", cause}})
        .value();
  }

  // As in the exchange: what is read from disk in one piece, and then kept in memory.
  static constexpr std::uint64_t kWholeReadBytesMax = 256_KiB;

  Objects& objects_;
  const SimulatedCacheSizes sizes_;
  TimedPolicy policy_;
  cache::PurgeList purges_;  // nobody purges
  Metrics metrics_;
  SparseFileSystem files_;
  Index index_;
  std::unique_ptr<cache::MemoryTier> memory_;
  std::unique_ptr<ObjectLog> log_;
  std::unique_ptr<cache::DiskStore> store_;
  SimulationResult result_;
};

/// What a whole object takes in the log, parts counted as one record.
std::uint64_t logged_bytes(const cache::CacheKey& key, const cache::ObjectHead& head,
                           std::uint64_t body_bytes) {
  using namespace cache::log;
  const std::uint64_t blocks = (body_bytes + kBlockBytes - 1) / kBlockBytes;
  const std::uint64_t head_bytes = head.reason.size() + 2 + head.fields.text().size();
  const std::uint64_t record_bytes = kRecordHeaderBytes + key.text().size() + head_bytes +
                                     blocks * kBlockChecksumBytes + body_bytes;
  return (record_bytes + kRecordAlignment - 1) / kRecordAlignment * kRecordAlignment +
         kFooterEntryBytes;
}

}  // namespace

SimulationResult simulate(const Plan& plan, const AdmissionSettings& admission,
                          const SimulatedCacheSizes& sizes) {
  Objects objects(plan);
  SimulatedCache cache(objects, admission, sizes);
  for (std::size_t i = 0; i < plan.requests.size(); ++i)
    cache.request(plan.requests[i], plan.times_seconds[i]);
  return cache.result();
}

ModelTrace model_trace(const Plan& plan, Medium medium) {
  // A map's slot, a list's node.
  constexpr std::uint64_t kTableBytes = 96;
  Objects objects(plan);
  ModelTrace trace;
  trace.requests = plan.requests;
  for (std::uint32_t i = 0; i < plan.objects.size(); ++i) {
    trace.body_bytes.push_back(objects.body_bytes(i));
    trace.charged_bytes.push_back(
        medium == Medium::Memory
            ? objects.fetch(i)->memory_bytes() + kTableBytes
            : logged_bytes(objects.key(i), *objects.head(), objects.body_bytes(i)));
  }
  return trace;
}

std::vector<bool> admitted_requests(const Plan& plan, const AdmissionSettings& admission) {
  const Objects objects(plan);
  TimedPolicy policy(admission);
  std::vector<bool> admitted;
  admitted.reserve(plan.requests.size());
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    policy.advance_to(plan.times_seconds[i]);
    const auto& fingerprint = objects.key(plan.requests[i]).fingerprint();
    const std::uint64_t bytes = objects.body_bytes(plan.requests[i]);
    admitted.push_back(admission::admits(policy.policy().sight(fingerprint, bytes)));
  }
  return admitted;
}

}  // namespace secondsight::loadtest
