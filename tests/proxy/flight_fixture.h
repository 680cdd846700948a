#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/proxy/running_proxy.h"

namespace secondsight::proxy::test {

inline constexpr const char* kFresh = "Cache-Control: max-age=60\r\n";

/// A body that differs at every place, so that a wrong offset is a wrong byte.
inline std::string body_of(std::size_t bytes, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::string body(bytes, '\0');
  for (char& c : body) c = static_cast<char>('!' + random() % 94);
  return body;
}

inline bool says(const RawResponse& response, std::string_view word) {
  return response.field("Cache-Status").find(word) != std::string::npos;
}

/// Sends a GET and leaves the response for later. A small receive buffer makes a slow reader.
inline std::unique_ptr<RawClient> ask(const RunningProxy& proxy, std::string_view target,
                                      std::string_view more = {}, int receive_buffer_bytes = 0) {
  auto client = std::make_unique<RawClient>(
      proxy.port(), RawClient::Options{.pump = {}, .receive_buffer_bytes = receive_buffer_bytes});
  client->send("GET " + std::string(target) + " HTTP/1.1\r\nHost: example.test\r\n" +
               std::string(more) + "\r\n");
  return client;
}

inline constexpr int kSlow = 4096;  // receive buffer of a slow reader

/// Asks until it is so; false when it never was.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

inline bool collapsed(const RunningProxy& proxy, int requests) {
  return eventually(
      [&] { return proxy.metric("secondsight_collapsed_requests_total") >= requests; });
}

inline std::string chunked(std::string_view body, std::size_t chunk_bytes) {
  std::string framed;
  for (std::size_t at = 0; at < body.size(); at += chunk_bytes) {
    const std::string_view piece = body.substr(at, chunk_bytes);
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", piece.size());
    framed.append(size).append(piece).append("\r\n");
  }
  return framed.append("0\r\n\r\n");
}

inline std::string chunked_head(std::string_view fields) {
  return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + std::string(fields) + "\r\n";
}

inline std::string head_of(std::size_t body_bytes, std::string_view fields) {
  return "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body_bytes) + "\r\n" +
         std::string(fields) + "\r\n";
}

/// A script that waits for a release before each answer.
inline ScriptedOrigin::Script answer_when_released(std::string answer) {
  return [answer = std::move(answer)](OriginConnection& connection) {
    while (!connection.read_request().empty()) {
      connection.checkpoint();
      if (!connection.send(answer)) return;
    }
  };
}

inline void release(ScriptedOrigin& origin, std::size_t times) {
  for (std::size_t i = 0; i < times; ++i) origin.release();
}

}  // namespace secondsight::proxy::test
