// One request's view of a flight.
#include <algorithm>
#include <utility>

#include "proxy/disk_pool.h"
#include "proxy/flight.h"
#include "proxy/response_sink.h"

namespace secondsight::proxy {

FlightReader::FlightReader(WorkerServices& services,
                           const cache::policy::FieldBlock& request_fields,
                           const cache::policy::RequestFacts& facts)
    : services_(services),
      fields_(request_fields),
      facts_(facts),
      signal_(std::make_shared<Signal>(services.io)) {}

FlightReader::~FlightReader() {
  if (flight_) flight_->leave(*this);
}

net::awaitable<Arrival> FlightReader::arrive(ResponseSink* interim) {
  for (;;) {
    std::shared_ptr<const std::string> interim_head;
    {
      const std::lock_guard lock(flight_->mutex_);
      const bool is_for_others = !leader_ || (arrived_ && arrival_ == Arrival::Released);
      if (interim != nullptr && !is_for_others && interim_seen_ < flight_->interim_.size()) {
        interim_head = flight_->interim_[interim_seen_++];
      } else if (arrived_) {
        break;
      }
    }
    if (!interim_head) {
      co_await signal_->wait();
    } else if (const auto sent = co_await interim->send_interim(*interim_head); !sent) {
      interim = nullptr;  // that client is gone, which begin() and finish() will find
    }
  }
  co_return arrival_;
}

struct FlightReader::Step {
  enum class Kind : std::uint8_t { Pieces, Behind, End, Cut, Wait } kind = Kind::Wait;
  std::shared_ptr<cache::Fill> fill;
};

net::awaitable<Result<std::span<const std::span<const std::byte>>>> FlightReader::next() {
  using Pieces = std::span<const std::span<const std::byte>>;
  constexpr std::size_t kPieces = 16;  // one writev of at most 1 MiB
  held_.clear();
  pieces_.clear();
  if (given_bytes_ > 0) flight_->consumed(*this, std::exchange(given_bytes_, 0));
  for (;;) {
    Step step;
    {
      Flight& flight = *flight_;
      const std::lock_guard lock(flight.mutex_);
      if (position_ < flight.window_first_) {
        step.kind = Step::Kind::Behind;
        step.fill = flight.fill_;
      } else if (position_ < flight.end_) {
        step.kind = Step::Kind::Pieces;
        std::uint64_t first = flight.window_first_;
        for (const cache::ChunkPtr& chunk : flight.window_) {
          const std::uint64_t chunk_end = first + chunk->size();
          if (chunk_end > position_) {
            const auto skip =
                position_ + given_bytes_ > first ? position_ + given_bytes_ - first : 0;
            held_.push_back(chunk);
            pieces_.push_back(std::span(*chunk).subspan(skip));
            given_bytes_ += pieces_.back().size();
            if (held_.size() == kPieces) break;
          }
          first = chunk_end;
        }
      } else if (flight.done_) {
        step.kind = flight.error_ == OriginError::None ? Step::Kind::End : Step::Kind::Cut;
        error_ = flight.error_;
      }
    }
    switch (step.kind) {
      case Step::Kind::Pieces:
      case Step::Kind::End:
        co_return Pieces(pieces_);
      case Step::Kind::Cut:
        co_return make_error_code(boost::system::errc::connection_aborted);
      case Step::Kind::Behind: {
        auto fill = std::move(step.fill);
        co_return co_await read_behind(std::move(fill));
      }
      case Step::Kind::Wait:
        co_await signal_->wait();
    }
  }
}

/// A reader that fell behind a fill takes what is on disk already.
net::awaitable<Result<std::span<const std::span<const std::byte>>>> FlightReader::read_behind(
    std::shared_ptr<cache::Fill> fill) {
  behind_.resize(kSliceBytes);
  const std::span<std::byte> out(behind_);
  auto got = fill->read(position_, out, ReadMode::PageCacheOnly);
  if (!got && got.error() == boost::system::errc::resource_unavailable_try_again) {
    auto job = [fill, out, offset = position_] {
      return fill->read(offset, out, ReadMode::Blocking);
    };
    const auto answer = co_await services_.disk.run(std::move(job));
    if (answer) got = *answer;
  }
  if (!got) co_return got.error();
  given_bytes_ = *got;
  pieces_.assign(1, std::span<const std::byte>(behind_).first(*got));
  co_return std::span<const std::span<const std::byte>>(pieces_);
}

void FlightReader::skip_to(std::uint64_t offset) {
  const std::uint64_t position = position_ + std::exchange(given_bytes_, 0);
  flight_->consumed_to(*this, std::max(position, offset));
}

std::uint64_t FlightReader::received_bytes() const {
  const std::lock_guard lock(flight_->mutex_);
  return flight_->end_;
}

std::string FlightReader::trailers() const {
  const std::lock_guard lock(flight_->mutex_);
  return std::string(flight_->trailers_.text());
}

bool FlightReader::would_wait() const {
  const std::lock_guard lock(flight_->mutex_);
  return position_ + given_bytes_ >= flight_->end_ && !flight_->done_;
}

}  // namespace secondsight::proxy
