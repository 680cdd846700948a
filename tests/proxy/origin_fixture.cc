#include "tests/proxy/origin_fixture.h"

#include <utility>

namespace secondsight::proxy::test {
namespace {

constexpr std::chrono::seconds kPatience{30};
constexpr std::chrono::milliseconds kStep{5};

}  // namespace

void Recorder::on_head(OriginHead&& received) {
  head = std::move(received);
  if (at_head) at_head();
}

OriginReceiver::Flow Recorder::on_body(std::span<const std::byte> bytes) {
  body_bytes += bytes.size();
  if (keeps_body) body.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return at_body ? at_body() : Flow::Go;
}

void Recorder::on_trailer(cache::policy::FieldLine field) {
  trailers.append(field.name).append(": ").append(field.value).append("\r\n");
}

void Recorder::on_done(OriginError error) {
  done = error;
  if (at_done) at_done();
}

std::string summary(const Recorder& recorder) {
  std::string text = recorder.done ? std::string(to_string(*recorder.done)) : "pending";
  if (!recorder.head) return text;
  text += ' ' + std::to_string(recorder.head->status) + ' ' + recorder.head->reason + " [";
  for (const auto [name, value] : recorder.head->fields)
    text.append(name).append("=").append(value).append("|");
  return text + "] " + recorder.body;
}

OriginRequest make_request(std::string method, std::string target) {
  OriginRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.fields.add("Host", "example.test");
  return request;
}

OriginClientTest::OriginClientTest(const std::vector<std::string>& urls,
                                   const std::function<void(OriginSettings&)>& change) {
  for (const auto& url : urls) {
    OriginUrl origin;
    origin.tls = url.starts_with("https:");
    origin.text = url;
    settings.urls.push_back(origin);
  }
  if (change) change(settings);
  client = make_curl_origin_client(io, settings, clock, metrics);
}

std::unique_ptr<OriginFetch> OriginClientTest::start(OriginRequest request,
                                                     OriginReceiver& receiver) {
  return client->start(std::move(request), receiver);
}

std::unique_ptr<OriginFetch> OriginClientTest::get(std::string target, OriginReceiver& receiver) {
  return start(make_request("GET", std::move(target)), receiver);
}

bool OriginClientTest::run_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    io.restart();
    io.run_one_for(kStep);
  }
  return true;
}

std::string OriginClientTest::fetch(OriginRequest request) {
  Recorder recorder;
  const auto fetch = start(std::move(request), recorder);
  run_until([&] { return recorder.done.has_value(); });
  return summary(recorder);
}

std::string OriginClientTest::fetch(std::string target) {
  return fetch(make_request("GET", std::move(target)));
}

void OriginClientTest::drain() {
  do {
    io.restart();
  } while (io.poll() > 0);
}

void OriginClientTest::pass(std::chrono::milliseconds time) {
  clock.now += time;
  client->tick(clock.now);
}

std::uint64_t OriginClientTest::errors(OriginError error) {
  return metrics
      .counter("secondsight_origin_errors_total", "Requests for the origin that failed.",
               {{"error", std::string(to_string(error))}})
      .value();
}

std::uint64_t OriginClientTest::connections() {
  return metrics
      .counter("secondsight_origin_connections_total", "Connections opened to the origin.")
      .value();
}

}  // namespace secondsight::proxy::test
