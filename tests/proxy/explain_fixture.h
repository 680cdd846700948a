#pragma once
#include <functional>

#include <boost/json/serialize.hpp>

#include "cache/policy/read_facts.h"
#include "proxy/explain.h"
#include "proxy/response.h"

namespace secondsight::proxy {

using Change = std::function<void(Situation&)>;
using admission::Verdict;
using cache::Detail;

inline constexpr WallTime kReceived{Seconds{784111777}};  // Sun, 06 Nov 1994 08:49:37 GMT

/// "Name: value\r\n" lines.
inline cache::policy::FieldBlock fields(std::string_view text) {
  return cache::policy::FieldBlock::from_text(text).value();
}

/// A GET of http://a.test/b, `age` seconds after a response with these fields was stored.
inline Situation situation(std::string_view request_fields, std::string_view response_fields,
                           int age) {
  const admission::FingerprintSeed seed{admission::FingerprintSeed::Bytes{}};
  const auto key = cache::CacheKey::primary("http", "a.test", "/b", seed);
  Situation s{
      .request = {}, .now = kReceived + Seconds{age}, .primary = key, .key = key, .head = nullptr};
  s.request.method = "GET";
  s.request.target = "/b";
  s.request.host = "a.test";
  s.request.fields = fields(request_fields);
  if (response_fields.empty()) return s;
  OriginHead head;
  head.status = 200;
  head.reason = "OK";
  head.fields = fields(response_fields);
  s.head = make_object_head(head, {kReceived, kReceived});
  s.body_bytes = 5;
  s.in_memory = s.served_from_memory = s.would_promote = true;
  return s;
}

/// Bytes [first, last] of 1000 are kept of it, as `age` says.
inline Change with_part(std::uint64_t first, std::uint64_t last) {
  return [=](Situation& s) {
    OriginHead head;
    head.status = 206;
    head.fields = fields("Cache-Control: max-age=60\r\nETag: \"v1\"\r\n");
    s.part =
        KeptPart{make_object_head(head, {kReceived, kReceived}), {{first, last + 1 - first}, 1000}};
  };
}

inline Change both(const Change& first, const Change& second) {
  return [=](Situation& s) {
    first(s);
    second(s);
  };
}

inline void on_repeat(Situation& s) {
  s.verdict = Verdict::Repeat;
  s.sighting = Detail::Repeat;
}

inline std::string words_of(const Explanation& explanation, std::string_view label) {
  std::string all;
  for (const auto& [name, text] : explanation.words)
    if (name == label) all.append(all.empty() ? "" : " | ").append(text);
  return all;
}

}  // namespace secondsight::proxy
