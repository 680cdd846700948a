#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <curl/curl.h>

#include "proxy/origin.h"
#include "proxy/origin_body_pull.h"
#include "proxy/origin_head_reader.h"
#include "proxy/origin_sockets.h"

namespace secondsight::proxy {

/// One libcurl easy handle and the response that comes through it: sets the request up, answers
/// libcurl's callbacks, and knows at the end what became of the fetch. Used for one fetch after
/// another; it neither starts nor ends itself (OriginClient does). One thread.
class OriginTransfer {
 public:
  OriginTransfer(net::io_context& io, OriginSockets& sockets, const OriginSettings& settings,
                 Counter& connections);
  ~OriginTransfer();
  OriginTransfer(const OriginTransfer&) = delete;
  OriginTransfer& operator=(const OriginTransfer&) = delete;

  CURL* easy() const noexcept { return easy_; }

  /// Takes the next request. `unpause` is called when libcurl should look at a paused direction
  /// again; it may be called from within libcurl.
  void begin(const OriginRequest& request, OriginReceiver& receiver, std::function<void()> unpause);
  /// Points the request at one origin. Only while nothing was sent.
  void aim(std::size_t origin);
  std::size_t origin() const noexcept { return origin_; }
  /// Lets go of the receiver and of the body: libcurl's callbacks fail from here on.
  void detach();
  bool attached() const noexcept { return receiver_ != nullptr; }
  OriginReceiver& receiver() const noexcept { return *receiver_; }

  /// The receiver's resume().
  void resume();
  /// Tells libcurl which directions may run again. Delivers what libcurl holds, from inside; fails
  /// when a callback did, and then the transfer must be ended with that code.
  CURLcode apply_pauses();

  /// What the end of the transfer with this code means.
  OriginError verdict(CURLcode code) const;
  /// The same when expired() ended it: an origin that answered in full, but neither reads nor
  /// refuses the rest of the request's body, has done its part.
  OriginError verdict_of_timeout() const noexcept {
    return whole_body_came() ? OriginError::None : OriginError::ResponseTimeout;
  }

  /// Whether its time is over; extends it by whatever happened since the last call. Time in which
  /// the receiver or the client's body is waited for does not count against the origin.
  bool expired(SteadyTime now);
  void expect_head_by(SteadyTime deadline) noexcept { deadline_ = deadline; }

 private:
  void set_constant_options();
  void set_callbacks();
  void set_method(const OriginRequest& request);
  void set_fields(const OriginRequest& request);
  std::size_t take_header(std::string_view lines);
  bool take_line(std::string_view line);
  bool take_head(OriginHead&& head);
  bool take_interim(OriginHead&& head);
  std::size_t take_body(std::span<const std::byte> bytes);
  std::size_t give_body(std::span<std::byte> out);
  int may_send();
  bool whole_body_came() const noexcept;

  net::io_context& io_;
  OriginSockets& sockets_;
  const OriginSettings& settings_;
  Counter& connections_;
  CURL* easy_;

  OriginReceiver* receiver_ = nullptr;
  std::function<void()> unpause_;
  std::shared_ptr<OriginBodyPull> body_;
  OriginHeadReader head_;
  std::string field_text_;              // the request's fields, each ended by NUL
  std::vector<curl_slist> field_list_;  // into field_text_
  std::optional<OriginError> decided_;  // by a callback, before libcurl reports its own view
  std::optional<std::uint64_t> length_;
  std::uint64_t received_ = 0;
  SteadyTime deadline_{};
  std::size_t origin_ = 0;
  std::optional<std::size_t> aimed_;  // the origin whose URL is set
  int status_ = 0;
  bool is_head_request_ = false;
  bool ends_at_head_ = false;
  bool sent_ = false;        // the request may have reached an origin
  bool opened_ = false;      // a connection was opened for it
  bool progressed_ = false;  // since expired() was last asked
  bool receiver_paused_ = false;
  bool download_paused_ = false;  // libcurl holds bytes back
  bool upload_paused_ = false;    // libcurl waits for the body
  // We wait for the origin's 100 ourselves: libcurl, asked to, would send a request that was
  // answered 417 once more.
  bool awaits_continue_ = false;
  std::optional<SteadyTime> continue_by_;  // the end of that wait, once the head is out
};

}  // namespace secondsight::proxy
