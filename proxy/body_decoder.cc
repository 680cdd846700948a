#include "proxy/body_decoder.h"

#include <algorithm>

#include "proxy/char_set.h"

namespace secondsight::proxy {
namespace {

constexpr unsigned kSizeDigitsMax = 16;

bool is_field_byte(char c) {
  return (c >= 0x20 && c != 0x7f) || c == '\t' || c < 0;
}

unsigned hex_value(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : ascii_lower(c) - 'a' + 10);
}

}  // namespace

void BodyDecoder::start_length(std::uint64_t body_bytes) noexcept {
  left_ = body_bytes;
  state_ = body_bytes > 0 ? State::Length : State::Done;
}

void BodyDecoder::start_chunked(std::uint64_t body_bytes_max,
                                std::uint64_t trailer_bytes_max) noexcept {
  body_bytes_left_ = body_bytes_max;
  extra_bytes_left_ = trailer_bytes_max;
  left_ = 0;
  state_ = State::SizeFirst;
}

std::optional<std::uint64_t> BodyDecoder::remaining() const noexcept {
  if (state_ == State::Done) return 0;
  if (state_ == State::Length) return left_;
  return std::nullopt;
}

BodyDecoder::Step BodyDecoder::next(std::span<const std::byte> bytes) noexcept {
  std::size_t at = 0;
  for (;;) {
    if (state_ == State::Done) return {Outcome::End, at, {}};
    if (state_ == State::Failed) return {Outcome::Failed, at, {}};
    if (at == bytes.size()) return {Outcome::NeedMore, at, {}};
    if (state_ == State::Length) return take_data(bytes, at, State::Done);
    if (state_ == State::Data) return take_data(bytes, at, State::DataCr);
    state_ = after_byte(static_cast<char>(bytes[at]));
    ++at;
  }
}

BodyDecoder::Step BodyDecoder::take_data(std::span<const std::byte> bytes, std::size_t at,
                                         State after) noexcept {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size() - at));
  left_ -= size;
  if (left_ == 0) state_ = after;
  return {Outcome::Data, at + size, bytes.subspan(at, size)};
}

BodyDecoder::State BodyDecoder::after_byte(char c) noexcept {
  switch (state_) {
    case State::SizeFirst:
    case State::Size:
    case State::Extension:
    case State::SizeLf:
      return after_size_byte(c);
    case State::DataCr:
      return c == '\r' ? State::DataLf : fail(RequestFault::Chunk);
    case State::DataLf:
      return c == '\n' ? State::SizeFirst : fail(RequestFault::Chunk);
    default:
      return after_trailer_byte(c);
  }
}

BodyDecoder::State BodyDecoder::after_size_byte(char c) noexcept {
  switch (state_) {
    case State::SizeFirst:
      digits_ = 0;
      left_ = 0;
      [[fallthrough]];
    case State::Size:
      if (kHexDigits.has(c) && ++digits_ <= kSizeDigitsMax) {
        left_ = left_ << 4 | hex_value(c);
        return State::Size;
      }
      if (digits_ == 0 || digits_ > kSizeDigitsMax) return fail(RequestFault::Chunk);
      if (c == ';') return State::Extension;
      return c == '\r' ? State::SizeLf : fail(RequestFault::Chunk);
    case State::Extension:
      if (c == '\r') return State::SizeLf;
      if (!is_field_byte(c) || extra_bytes_left_ == 0) return fail(RequestFault::Chunk);
      --extra_bytes_left_;
      return State::Extension;
    default:  // SizeLf
      if (c != '\n') return fail(RequestFault::Chunk);
      if (left_ > body_bytes_left_) return fail(RequestFault::BodyTooLarge);
      body_bytes_left_ -= left_;
      return left_ > 0 ? State::Data : State::TrailerBegin;
  }
}

BodyDecoder::State BodyDecoder::after_trailer_byte(char c) noexcept {
  if (c != '\r' && c != '\n') {
    if (extra_bytes_left_ == 0) return fail(RequestFault::HeaderTooLarge);
    --extra_bytes_left_;
  }
  switch (state_) {
    case State::TrailerBegin:
      if (c == '\r') return State::EndLf;
      return kTokenChars.has(c) ? State::TrailerName : fail(RequestFault::Chunk);
    case State::TrailerName:
      if (c == ':') return State::TrailerValue;
      return kTokenChars.has(c) ? State::TrailerName : fail(RequestFault::Chunk);
    case State::TrailerValue:
      if (c == '\r') return State::TrailerLf;
      return is_field_byte(c) ? State::TrailerValue : fail(RequestFault::Chunk);
    case State::TrailerLf:
      return c == '\n' ? State::TrailerBegin : fail(RequestFault::Chunk);
    default:  // EndLf
      return c == '\n' ? State::Done : fail(RequestFault::Chunk);
  }
}

BodyDecoder::State BodyDecoder::fail(RequestFault fault) noexcept {
  fault_ = fault;
  return State::Failed;
}

}  // namespace secondsight::proxy
