#include "proxy/request_parser.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>

#include <boost/beast/http/basic_parser.hpp>

#include "proxy/authority.h"
#include "proxy/char_set.h"

namespace secondsight::proxy {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;
using cache::policy::equals_ignoring_case;

constexpr unsigned kEmptyLinesMax = 4;  // before a request line, RFC 9112 2.2 asks for at least one

/// Bytes that need no second look inside a line.
constexpr std::array<bool, 256> kPlainBytes = [] {
  std::array<bool, 256> plain{};
  for (std::size_t c = 0; c < plain.size(); ++c) plain[c] = (c >= 0x20 && c != 0x7f) || c == '\t';
  return plain;
}();

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Calls `each` with every member of a comma-separated list, empty ones left out. RFC 9110 5.6.1.
template <class Each>
void for_each_member(std::string_view list, Each each) {
  while (!list.empty()) {
    const auto comma = std::min(list.find(','), list.size());
    if (const auto member = trim(list.substr(0, comma)); !member.empty()) each(member);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

bool is_target_text(std::string_view target) {
  return std::all_of(target.begin(), target.end(),
                     [](char c) { return c > 0x20 && c < 0x7f && c != '#'; });
}

/// Whether a line whose version Beast refused is a request line all the same, of another version.
bool ends_in_version(std::string_view line) {
  constexpr std::string_view kForm = " HTTP/d.d";
  if (line.size() < kForm.size() || std::count(line.begin(), line.end(), ' ') != 2) return false;
  const std::string_view end = line.substr(line.size() - kForm.size());
  return end.starts_with(" HTTP/") && kDigits.has(end[6]) && end[7] == '.' && kDigits.has(end[8]);
}

/// Takes what Beast finds in one head and holds it against the rules Beast leaves to others.
/// Beast's `skip` keeps it from the body; its own limits are off, the scan has stricter ones.
class HeadReader final : public http::basic_parser<true> {
 public:
  HeadReader(const RequestLimits& limits, Request& request) : limits_(limits), request_(request) {
    header_limit(std::numeric_limits<std::uint32_t>::max());
    body_limit(boost::none);
    skip(true);
    request.method.clear();
    request.target.clear();
    request.host.clear();
    request.fields.clear();
    request.content_length.reset();
    request.chunked = request.expects_continue = request.has_upgrade = false;
  }

  /// What this class refused, or what Beast's error stands for.
  RequestFault fault_of(const error_code& error) const {
    if (fault_) return *fault_;
    if (error == http::error::bad_version) return RequestFault::Version;
    if (error == http::error::bad_method || error == http::error::bad_target)
      return RequestFault::RequestLine;
    if (error == http::error::bad_content_length || error == http::error::multiple_content_length)
      return codings_ > 0 ? RequestFault::TwoLengths : RequestFault::ContentLength;
    if (error == http::error::bad_transfer_encoding)
      return request_.content_length ? RequestFault::TwoLengths : RequestFault::TransferEncoding;
    return RequestFault::FieldLine;
  }

 private:
  using Text = boost::beast::string_view;
  static std::string_view view(Text text) { return {text.data(), text.size()}; }

  void refuse(RequestFault fault, error_code& error) {
    fault_ = fault;
    error = http::error::bad_field;
  }

  void on_request_impl(http::verb, Text method, Text target, int version,
                       error_code& error) override {
    request_.method.assign(view(method));
    request_.version = version;
    if (request_.method == "CONNECT") return refuse(RequestFault::Method, error);
    if (!is_target_text(view(target)) || !read_target(view(target)))
      return refuse(RequestFault::Target, error);
  }

  /// RFC 9112 3.2.1, 3.2.2, 3.2.4.
  bool read_target(std::string_view target) {
    if (target.starts_with('/')) {
      request_.target.assign(target);
      return true;
    }
    if (target == "*") {
      request_.target.assign(target);
      return request_.method == "OPTIONS";
    }
    const auto scheme_end = target.find("://");
    if (scheme_end == std::string_view::npos) return false;
    const std::string_view scheme = target.substr(0, scheme_end);
    if (!equals_ignoring_case(scheme, "http") && !equals_ignoring_case(scheme, "https"))
      return false;
    target.remove_prefix(scheme_end + 3);
    const auto path_begin = std::min(target.find_first_of("/?"), target.size());
    if (!normalize_authority(target.substr(0, path_begin), request_.host)) return false;
    target.remove_prefix(path_begin);
    absolute_ = true;
    if (target.empty()) {
      request_.target.assign(request_.method == "OPTIONS" ? "*" : "/");
    } else {
      request_.target.assign(target.starts_with('?') ? "/" : "").append(target);
    }
    return true;
  }

  void on_field_impl(http::field name, Text name_text, Text value_text,
                     error_code& error) override {
    const std::string_view value = view(value_text);
    request_.fields.add(view(name_text), value);
    switch (name) {
      case http::field::host:
        if (++hosts_ > 1 || !read_host(value)) refuse(RequestFault::Host, error);
        break;
      case http::field::content_length:
        if (!read_content_length(value)) refuse(RequestFault::ContentLength, error);
        break;
      case http::field::transfer_encoding:
        read_transfer_encoding(value);
        break;
      case http::field::connection:
        for_each_member(value, [this](std::string_view option) {
          close_ = close_ || equals_ignoring_case(option, "close");
          keep_alive_ = keep_alive_ || equals_ignoring_case(option, "keep-alive");
        });
        break;
      case http::field::upgrade:
        request_.has_upgrade = true;
        break;
      case http::field::expect:
        request_.expects_continue = equals_ignoring_case(value, "100-continue");
        break;
      default:
        break;
    }
  }

  /// The absolute form's authority wins over Host, which must be valid all the same. RFC
  /// 9112 3.2.2.
  bool read_host(std::string_view value) {
    return normalize_authority(value, absolute_ ? ignored_host_ : request_.host);
  }

  bool read_content_length(std::string_view value) {
    if (request_.content_length || value.empty() || !kDigits.has_all(value)) return false;
    std::uint64_t bytes = 0;
    if (std::from_chars(value.data(), value.data() + value.size(), bytes).ec != std::errc{})
      return false;
    request_.content_length = bytes;
    return true;
  }

  void read_transfer_encoding(std::string_view value) {
    last_coding_is_chunked_ = false;
    ++coding_fields_;
    for_each_member(value, [this](std::string_view coding) {
      ++codings_;
      last_coding_is_chunked_ = equals_ignoring_case(coding, "chunked");
      if (last_coding_is_chunked_) ++chunked_codings_;
    });
  }

  void on_header_impl(error_code& error) override {
    if (hosts_ == 0 && request_.version == 11) return refuse(RequestFault::Host, error);
    if (coding_fields_ > 0) {
      if (request_.content_length) return refuse(RequestFault::TwoLengths, error);
      if (!last_coding_is_chunked_ || chunked_codings_ != 1 || request_.version < 11)
        return refuse(RequestFault::TransferEncoding, error);
      if (codings_ > 1) return refuse(RequestFault::UnknownCoding, error);
      request_.chunked = true;
    }
    if (request_.content_length.value_or(0) > limits_.body_bytes)
      return refuse(RequestFault::BodyTooLarge, error);
    request_.keep_alive = !close_ && (request_.version == 11 || keep_alive_);
    request_.expects_continue =
        request_.expects_continue && request_.version == 11 && request_.has_body();
  }

  // Not reached: `skip` ends the message with its head, and this parses no responses.
  void on_response_impl(int, Text, int, error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(Text, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, Text, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, Text, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  const RequestLimits& limits_;
  Request& request_;
  std::optional<RequestFault> fault_;
  std::string ignored_host_;
  unsigned hosts_ = 0;
  unsigned coding_fields_ = 0;
  unsigned codings_ = 0;
  unsigned chunked_codings_ = 0;
  bool last_coding_is_chunked_ = false;
  bool close_ = false;
  bool keep_alive_ = false;
  bool absolute_ = false;
};

}  // namespace

struct RequestParser::Reader {
  std::optional<HeadReader> head;  // made anew for each message: Beast's parsers serve once
};

RequestParser::RequestParser(const RequestLimits& limits)
    : limits_(limits), reader_(std::make_unique<Reader>()) {}

RequestParser::~RequestParser() = default;

void RequestParser::reset() noexcept {
  scanned_ = line_begin_ = head_begin_ = fed_ = 0;
  empty_lines_ = lines_ = 0;
  reader_->head.reset();
}

RequestParser::Outcome RequestParser::parse(std::string_view bytes, Request& request) {
  switch (scan(bytes)) {
    case Scan::Failed:
      return Outcome::Failed;
    case Scan::NeedMore:
      if (bytes.size() - head_begin_ >= limits_.header_bytes) return too_large();
      // The request line is judged as soon as it is there: who talks another protocol learns it at
      // once.
      if (lines_ > 0 && fed_ == 0 && !feed(bytes.substr(0, request_line_end_), request))
        return Outcome::Failed;
      return Outcome::NeedMore;
    case Scan::Complete:
      break;
  }
  if (scanned_ - head_begin_ > limits_.header_bytes) return too_large();
  return feed(bytes.substr(0, scanned_), request) ? Outcome::Complete : Outcome::Failed;
}

/// Judges line endings, folding and control bytes of what is new. Complete at the empty line.
RequestParser::Scan RequestParser::scan(std::string_view bytes) {
  while (scanned_ < bytes.size()) {
    const char c = bytes[scanned_];
    if (kPlainBytes[static_cast<unsigned char>(c)]) {
      if (scanned_ == line_begin_ && (c == ' ' || c == '\t'))
        return fail(lines_ == 0 ? RequestFault::RequestLine : RequestFault::FoldedField);
      ++scanned_;
      continue;
    }
    if (c == '\n') return fail(RequestFault::LineEnding);
    if (c != '\r') return fail(RequestFault::ControlByte);
    if (scanned_ + 1 == bytes.size()) return Scan::NeedMore;
    if (bytes[scanned_ + 1] != '\n') return fail(RequestFault::LineEnding);
    const bool is_empty = scanned_ == line_begin_;
    scanned_ += 2;
    line_begin_ = scanned_;
    if (is_empty && lines_ > 0) return Scan::Complete;
    if (is_empty) {
      head_begin_ = scanned_;
      if (++empty_lines_ > kEmptyLinesMax) return fail(RequestFault::RequestLine);
      continue;
    }
    if (++lines_ == 1) request_line_end_ = scanned_;
    if (lines_ - 1 > limits_.header_fields) return fail(RequestFault::TooManyFields);
  }
  return Scan::NeedMore;
}

/// Gives Beast what it has not had of `bytes`: the request line, or all up to the head's end.
bool RequestParser::feed(std::string_view bytes, Request& request) {
  if (fed_ == 0) {
    fed_ = head_begin_;
    reader_->head.emplace(limits_, request);
  }
  error_code error;
  const std::string_view fresh = bytes.substr(fed_);
  const std::size_t taken = reader_->head->put({fresh.data(), fresh.size()}, error);
  fed_ += taken;
  // Beast wants more than there can be: a line too short to be one.
  if (error == http::error::need_more && taken < fresh.size()) error = http::error::bad_target;
  if (!error || error == http::error::need_more) return true;
  fault_ = reader_->head->fault_of(error);
  const std::string_view line = bytes.substr(head_begin_, request_line_end_ - 2 - head_begin_);
  if (fault_ == RequestFault::Version && !ends_in_version(line)) fault_ = RequestFault::RequestLine;
  return false;
}

RequestParser::Scan RequestParser::fail(RequestFault fault) noexcept {
  fault_ = fault;
  return Scan::Failed;
}

RequestParser::Outcome RequestParser::too_large() noexcept {
  const bool is_line = lines_ == 0 || request_line_end_ - head_begin_ > limits_.header_bytes;
  fault_ = is_line ? RequestFault::RequestLineTooLong : RequestFault::HeaderTooLarge;
  return Outcome::Failed;
}

}  // namespace secondsight::proxy
