#include "proxy/origin_transfer.h"

#include <array>
#include <limits>
#include <string_view>
#include <utility>

#include "cache/policy/hop_by_hop.h"
#include "config/check.h"

namespace secondsight::proxy {
namespace {

using cache::policy::equals_ignoring_case;

// One read from the socket; libcurl hands it on in pieces of 16 KiB.
constexpr long kReadBytes = 64L * 1024;

template <class T>
void set(CURL* easy, CURLoption option, T value) {
  CHECK(curl_easy_setopt(easy, option, value) == CURLE_OK);
}

// What libcurl writes itself, from the request's own framing.
bool is_framing(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 4> kFraming{"content-length", "transfer-encoding",
                                                     "connection", "expect"};
  for (const auto framing : kFraming)
    if (equals_ignoring_case(name, framing)) return true;
  return false;
}

// Methods whose receivers expect a body, and so want to be told that there is none. RFC 9110 8.6.
bool anticipates_body(std::string_view method) noexcept {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

bool is_malformed(CURLcode code) noexcept {
  switch (code) {
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:  // not HTTP, or a version or status that is none
    case CURLE_BAD_CONTENT_ENCODING:
    case CURLE_OUT_OF_MEMORY:  // libcurl's own limit of one line
      return true;
    default:
      return false;
  }
}

}  // namespace

OriginTransfer::OriginTransfer(net::io_context& io, OriginSockets& sockets,
                               const OriginSettings& settings, Counter& connections)
    : io_(io),
      sockets_(sockets),
      settings_(settings),
      connections_(connections),
      easy_(curl_easy_init()) {
  CHECK(easy_ != nullptr);
  set_constant_options();
}

OriginTransfer::~OriginTransfer() {
  detach();
  curl_easy_cleanup(easy_);
}

void OriginTransfer::set_constant_options() {
  set(easy_, CURLOPT_NOSIGNAL, 1L);
  // A cancelled fetch must not wait for a name server.
  set(easy_, CURLOPT_QUICK_EXIT, 1L);
  set(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  set(easy_, CURLOPT_PROXY, "");
  set(easy_, CURLOPT_NOPROXY, "*");
  set(easy_, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(easy_, CURLOPT_FOLLOWLOCATION, 0L);
  set(easy_, CURLOPT_PATH_AS_IS, 1L);
  set(easy_, CURLOPT_HTTP09_ALLOWED, 0L);
  set(easy_, CURLOPT_HTTP_CONTENT_DECODING, 0L);
  set(easy_, CURLOPT_TCP_NODELAY, 1L);
  set(easy_, CURLOPT_BUFFERSIZE, kReadBytes);
  set(easy_, CURLOPT_UPLOAD_BUFFERSIZE, kReadBytes);
  set(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
  set(easy_, CURLOPT_SSL_VERIFYHOST, 2L);
  set(easy_, CURLOPT_CONNECTTIMEOUT_MS, settings_.connect_timeout.count());
  const auto keepalive = std::chrono::ceil<std::chrono::seconds>(settings_.keepalive);
  set(easy_, CURLOPT_MAXAGE_CONN, keepalive.count());

  set_callbacks();
}

void OriginTransfer::set_callbacks() {
  const curl_opensocket_callback open_socket =
      [](void* self, curlsocktype, curl_sockaddr* address) noexcept -> curl_socket_t {
    auto* transfer = static_cast<OriginTransfer*>(self);
    // A connection for a second sending of one request, which may_send() would refuse anyway.
    if (!transfer->attached() || transfer->sent_) return CURL_SOCKET_BAD;
    transfer->opened_ = true;
    return transfer->sockets_.open(*address);
  };
  set(easy_, CURLOPT_OPENSOCKETFUNCTION, open_socket);
  set(easy_, CURLOPT_OPENSOCKETDATA, this);
  // A connection outlives the transfer that opened it.
  const curl_closesocket_callback close_socket = [](void* sockets, curl_socket_t socket) noexcept {
    static_cast<OriginSockets*>(sockets)->close(socket);
    return 0;
  };
  set(easy_, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  set(easy_, CURLOPT_CLOSESOCKETDATA, &sockets_);

  const curl_prereq_callback before_send = [](void* self, char*, char*, int, int) noexcept {
    return static_cast<OriginTransfer*>(self)->may_send();
  };
  set(easy_, CURLOPT_PREREQFUNCTION, before_send);
  set(easy_, CURLOPT_PREREQDATA, this);
  const curl_write_callback write_header = [](char* data, std::size_t size, std::size_t count,
                                              void* self) -> std::size_t {
    return static_cast<OriginTransfer*>(self)->take_header({data, size * count});
  };
  set(easy_, CURLOPT_HEADERFUNCTION, write_header);
  set(easy_, CURLOPT_HEADERDATA, this);
  const curl_write_callback write_body = [](char* data, std::size_t size, std::size_t count,
                                            void* self) -> std::size_t {
    return static_cast<OriginTransfer*>(self)->take_body(
        std::as_bytes(std::span<const char>(data, size * count)));
  };
  set(easy_, CURLOPT_WRITEFUNCTION, write_body);
  set(easy_, CURLOPT_WRITEDATA, this);
  const curl_read_callback read_body = [](char* data, std::size_t size, std::size_t count,
                                          void* self) -> std::size_t {
    return static_cast<OriginTransfer*>(self)->give_body(
        std::as_writable_bytes(std::span<char>(data, size * count)));
  };
  set(easy_, CURLOPT_READFUNCTION, read_body);
  set(easy_, CURLOPT_READDATA, this);
}

void OriginTransfer::begin(const OriginRequest& request, OriginReceiver& receiver,
                           std::function<void()> unpause) {
  receiver_ = &receiver;
  unpause_ = std::move(unpause);
  decided_.reset();
  length_.reset();
  received_ = 0;
  status_ = 0;
  sent_ = opened_ = progressed_ = false;
  receiver_paused_ = download_paused_ = upload_paused_ = false;
  awaits_continue_ = request.body != nullptr && request.expects_continue;
  continue_by_.reset();
  set(easy_, CURLOPT_FORBID_REUSE, 0L);
  is_head_request_ = request.method == "HEAD";
  ends_at_head_ = is_head_request_ && request.body != nullptr;
  if (request.body != nullptr)
    body_ = std::make_shared<OriginBodyPull>(io_, *request.body, request.content_length, unpause_);
  set_method(request);
  set_fields(request);
  set(easy_, CURLOPT_REQUEST_TARGET, request.target.c_str());
}

void OriginTransfer::aim(std::size_t origin) {
  const OriginUrl& url = settings_.urls[origin];
  origin_ = origin;
  opened_ = false;
  decided_.reset();
  head_.reset(settings_.max_header_bytes,
              url.tls ? OriginHeadReader::Http2::Accepted : OriginHeadReader::Http2::Refused);
  if (aimed_ == origin) return;
  aimed_ = origin;
  set(easy_, CURLOPT_URL, (url.text + "/").c_str());
  set(easy_, CURLOPT_HTTP_VERSION,
      static_cast<long>(url.tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
}

void OriginTransfer::set_method(const OriginRequest& request) {
  const char* method = request.method.c_str();
  set(easy_, CURLOPT_HTTPGET, 1L);  // undoes what the request before has set
  set(easy_, CURLOPT_CUSTOMREQUEST, static_cast<char*>(nullptr));
  if (request.body != nullptr) {
    set(easy_, CURLOPT_UPLOAD, 1L);
    set(easy_, CURLOPT_INFILESIZE_LARGE,
        request.content_length ? static_cast<curl_off_t>(*request.content_length) : curl_off_t{-1});
    set(easy_, CURLOPT_CUSTOMREQUEST, method);
  } else if (is_head_request_) {
    set(easy_, CURLOPT_NOBODY, 1L);
  } else if (request.method != "GET") {
    set(easy_, CURLOPT_CUSTOMREQUEST, method);
  }
}

// The list libcurl wants, over one copy of the fields' text. "Name:" would remove a field of
// libcurl's own, "Name;" sends one with an empty value.
void OriginTransfer::set_fields(const OriginRequest& request) {
  field_text_.clear();
  std::vector<std::size_t> begins;
  begins.reserve(request.fields.count() + 3);
  const auto add = [&](std::initializer_list<std::string_view> parts) {
    begins.push_back(field_text_.size());
    for (const auto part : parts) field_text_.append(part);
    field_text_.push_back('\0');
  };
  add({"Expect:"});  // libcurl looks at the first one only, and adds none
  if (awaits_continue_) add({"Expect: 100-continue"});
  if (request.accepts_trailers) {
    add({"TE: trailers"});
    add({"Connection: TE"});
  }
  if (!request.fields.contains("accept")) add({"Accept:"});
  for (const auto [name, value] : request.fields) {
    if (is_framing(name)) continue;
    if (value.empty()) {
      add({name, ";"});
    } else {
      add({name, ": ", value});
    }
  }
  if (request.body == nullptr && (request.content_length || anticipates_body(request.method)))
    add({"Content-Length: 0"});

  field_list_.clear();
  for (const std::size_t begin : begins)
    field_list_.push_back({field_text_.data() + begin, nullptr});
  for (std::size_t i = 1; i < field_list_.size(); ++i) field_list_[i - 1].next = &field_list_[i];
  set(easy_, CURLOPT_HTTPHEADER, field_list_.data());
}

void OriginTransfer::detach() {
  receiver_ = nullptr;
  unpause_ = nullptr;
  if (body_) body_->abandon();
  body_.reset();
}

// libcurl asks before every sending, also before the silent second one after a pooled connection
// died: the origin may have received the first.
int OriginTransfer::may_send() {
  if (!attached()) return CURL_PREREQFUNC_ABORT;
  if (std::exchange(sent_, true)) {
    decided_ = OriginError::Disconnected;
    return CURL_PREREQFUNC_ABORT;
  }
  if (opened_) connections_.add();
  return CURL_PREREQFUNC_OK;
}

/// False: the receiver ended the fetch.
bool OriginTransfer::take_interim(OriginHead&& head) {
  if (head.status != 100) {
    receiver_->on_interim(std::move(head));
    return attached();
  }
  awaits_continue_ = false;
  if (upload_paused_) unpause_();
  return true;
}

std::size_t OriginTransfer::take_header(std::string_view lines) {
  // Mostly one line; but trailers that a pause held back come together.
  for (std::string_view rest = lines; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n') + 1);  // without '\n': empty
    if (!attached() || !take_line(line.empty() ? rest : line)) return 0;
    rest.remove_prefix(line.empty() ? rest.size() : line.size());
  }
  return lines.size();
}

/// False: the transfer is over.
bool OriginTransfer::take_line(std::string_view line) {
  switch (head_.take(line)) {
    case OriginHeadReader::Step::More:
      return true;
    case OriginHeadReader::Step::Malformed:
      decided_ = OriginError::Malformed;
      return false;
    case OriginHeadReader::Step::Interim:
      return take_interim(head_.release());
    case OriginHeadReader::Step::Trailer:
      if (cache::policy::may_be_trailer(head_.trailer().name))
        receiver_->on_trailer(head_.trailer());
      return attached();
    case OriginHeadReader::Step::Complete:
      return take_head(head_.release());
  }
  return false;
}

bool OriginTransfer::take_head(OriginHead&& head) {
  progressed_ = true;
  status_ = head.status;
  if (status_ == 204) head.content_length.reset();
  length_ = head.content_length;
  // The origin was promised a body that it will not get: what it makes of the next bytes on this
  // connection is its own idea.
  if (awaits_continue_) set(easy_, CURLOPT_FORBID_REUSE, 1L);
  receiver_->on_head(std::move(head));
  if (!attached()) return false;
  if (ends_at_head_) {
    // libcurl takes a HEAD with a body for an upload and would wait for a response body.
    decided_ = OriginError::None;
    return false;
  }
  if (upload_paused_) unpause_();
  return true;
}

std::size_t OriginTransfer::take_body(std::span<const std::byte> bytes) {
  if (!attached()) return 0;
  if (receiver_paused_) {
    download_paused_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  progressed_ = true;
  received_ += bytes.size();
  const auto flow = receiver_->on_body(bytes);
  if (!attached()) return 0;
  receiver_paused_ = flow == OriginReceiver::Flow::Pause;
  if (upload_paused_) unpause_();
  return bytes.size();
}

std::size_t OriginTransfer::give_body(std::span<std::byte> out) {
  if (!attached() || !body_) return CURL_READFUNC_ABORT;
  if (awaits_continue_ && head_.complete()) return 0;  // the answer came without the body
  if (awaits_continue_) {
    upload_paused_ = true;
    return CURL_READFUNC_PAUSE;
  }
  const auto piece = body_->read(out);
  switch (piece.state) {
    case OriginBodyPull::State::Ready:
      progressed_ = true;
      return piece.bytes;
    case OriginBodyPull::State::Waiting:
      upload_paused_ = true;
      return CURL_READFUNC_PAUSE;
    case OriginBodyPull::State::End:
      return 0;
    case OriginBodyPull::State::Failed:
      break;
  }
  decided_ = OriginError::RequestBody;
  return CURL_READFUNC_ABORT;
}

void OriginTransfer::resume() {
  if (!std::exchange(receiver_paused_, false)) return;
  progressed_ = true;
  if (download_paused_) unpause_();
}

CURLcode OriginTransfer::apply_pauses() {
  if (!attached()) return CURLE_OK;
  if (!receiver_paused_) download_paused_ = false;
  // Once there is an answer libcurl may want no more of the body, but it does not end a transfer
  // that is paused: it is asked again and again.
  if (head_.complete() || (body_ && !body_->waiting() && !awaits_continue_)) upload_paused_ = false;
  // The callbacks that this runs may pause again.
  const int paused =
      (download_paused_ ? CURLPAUSE_RECV : 0) | (upload_paused_ ? CURLPAUSE_SEND : 0);
  return curl_easy_pause(easy_, paused);
}

bool OriginTransfer::expired(SteadyTime now) {
  if (upload_paused_ && head_.complete()) unpause_();
  if (upload_paused_ && awaits_continue_ && !head_.complete()) {
    if (!continue_by_) continue_by_ = now + kContinuePatience;
    if (now >= *continue_by_) {
      awaits_continue_ = false;
      unpause_();
    }
  }
  const bool waits_for_others = receiver_paused_ || (body_ && body_->waiting());
  if (std::exchange(progressed_, false) || waits_for_others) {
    deadline_ = now + (head_.complete() ? settings_.idle_timeout : settings_.response_timeout);
    return false;
  }
  return now >= deadline_;
}

bool OriginTransfer::whole_body_came() const noexcept {
  if (!head_.complete()) return false;
  return is_head_request_ || status_ == 204 || status_ == 304 || length_ == received_;
}

OriginError OriginTransfer::verdict(CURLcode code) const {
  if (decided_) return *decided_;
  if (code == CURLE_OK) {
    // libcurl is content with a connection that ends within the head.
    return head_.complete() ? OriginError::None : OriginError::Disconnected;
  }
  if (!sent_)
    return code == CURLE_OPERATION_TIMEDOUT ? OriginError::ConnectTimeout
                                            : OriginError::Unreachable;
  if (!head_.complete())
    return is_malformed(code) ? OriginError::Malformed : OriginError::Disconnected;
  // The origin answered in full and closed while it was still being sent to.
  if (code == CURLE_SEND_ERROR && whole_body_came()) return OriginError::None;
  if (is_malformed(code)) return OriginError::Malformed;
  if (code == CURLE_RECV_ERROR && !settings_.urls[origin_].tls) {
    // The same code for a failed read and for chunks that are none.
    long os_error = 0;
    curl_easy_getinfo(easy_, CURLINFO_OS_ERRNO, &os_error);
    if (os_error == 0) return OriginError::Malformed;
  }
  return OriginError::Truncated;
}

}  // namespace secondsight::proxy
