#include "tests/proxy/running_proxy.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace secondsight::proxy::test {
namespace {

using namespace literals;

std::string target_of(const std::string& request) {
  const auto first = request.find(' ');
  return request.substr(first + 1, request.find(' ', first + 1) - first - 1);
}

}  // namespace

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "secondsight-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

RunningProxy::RunningProxy(const std::string& origin_url, const Change& change,
                           std::unique_ptr<FileSystem> files) {
  const auto colon = origin_url.rfind(':');
  settings_.proxy.listen = {{"127.0.0.1", 0}};
  settings_.proxy.workers = 2;
  settings_.proxy.drain_timeout = std::chrono::milliseconds{0};
  settings_.origin.urls = {
      {.tls = false,
       .host = "127.0.0.1",
       .port = static_cast<std::uint16_t>(std::stoi(origin_url.substr(colon + 1))),
       .text = origin_url}};
  settings_.cache.directory = (folder_.path() / "cache").string();
  settings_.cache.disk_bytes = 16_MiB;
  settings_.cache.memory_bytes = 4_MiB;
  settings_.admission.expected_keys = 10'000;
  settings_.admin.enabled = false;
  settings_.admin.listen.port = 0;
  if (change) change(settings_);
  start(std::move(files));
}

RunningProxy::~RunningProxy() {
  stop();
}

void RunningProxy::start(std::unique_ptr<FileSystem> files) {
  server_ = std::make_unique<Server>(settings_, clock, std::move(files));
  if (const std::string failure = server_->start(); !failure.empty())
    throw std::runtime_error(failure);
}

void RunningProxy::stop(const std::function<bool()>& hurry) {
  if (server_) server_->stop(hurry);
  server_.reset();
}

void RunningProxy::restart() {
  stop();
  start(nullptr);
}

std::uint16_t RunningProxy::port() const {
  return server_->endpoints().front().port();
}

RawResponse RunningProxy::get(std::string_view target, std::string_view more) const {
  return send("GET", target, more);
}

RawResponse RunningProxy::send(std::string_view method, std::string_view target,
                               std::string_view more, std::string_view body) const {
  RawClient client(port());
  std::string request;
  request.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: example.test\r\n");
  if (!body.empty()) request.append("Content-Length: " + std::to_string(body.size()) + "\r\n");
  request.append(more).append("\r\n").append(body);
  client.send(request);
  return client.read_response(method);
}

double RunningProxy::metric(std::string_view name) const {
  const std::string all = server_->metrics().expose();
  const std::string line_start = "\n" + std::string(name) + " ";
  const auto at = all.find(line_start);
  return at == std::string::npos ? 0 : std::atof(all.c_str() + at + line_start.size());
}

RoutedOrigin::RoutedOrigin()
    : origin_(std::make_unique<ScriptedOrigin>([this](OriginConnection& connection) {
        for (;;) {
          const std::string request = connection.read_request();
          if (request.empty() || !connection.send(answer(request))) return;
        }
      })) {}

void RoutedOrigin::on(const std::string& target, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[target] = std::move(answer);
}

void RoutedOrigin::on(const std::string& target, std::string answer) {
  on(target, [answer = std::move(answer)](const std::string&) { return answer; });
}

std::size_t RoutedOrigin::count(std::string_view target) const {
  std::size_t sum = 0;
  for (const std::string& request : origin_->requests())
    if (target_of(request) == target) ++sum;
  return sum;
}

std::string RoutedOrigin::answer(const std::string& request) {
  Answer answer;
  {
    const std::lock_guard lock(mutex_);
    const auto found = answers_.find(target_of(request));
    if (found != answers_.end()) answer = found->second;
  }
  if (answer) return answer(request);
  return "HTTP/1.1 404 Not Found\r\nCache-Control: no-store\r\nContent-Length: 0\r\n\r\n";
}

std::string ok(std::string_view fields, std::string_view body) {
  std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  return answer.append(fields).append("\r\n").append(body);
}

}  // namespace secondsight::proxy::test
