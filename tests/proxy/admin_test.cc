#include "proxy/admin.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <gtest/gtest.h>

#include "config/check.h"
#include "tests/support/raw_client.h"

namespace secondsight::proxy {
namespace {

using testing::RawClient;
using testing::RawResponse;

class AdminTest : public ::testing::Test {
 protected:
  AdminTest() {
    metrics.counter("test_things_total", "Things.").add(7);
    const auto bound = admin.start({"127.0.0.1", 0});
    CHECK(bound.has_value());
    port = bound->port();
  }
  RawResponse ask(const std::string& method, const std::string& target,
                  const std::string& body = {}) {
    RawClient client(port);
    client.send(method + ' ' + target + " HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_response(method);
  }
  /// Stands in for the proxy's explanations: tells what it was asked.
  static std::variant<Explanation, NotExplained> explain(std::string_view head) {
    if (head.find("bad") != std::string_view::npos) return NotExplained{"it is \"bad\""};
    Explanation explanation;
    explanation.facts["head"] = head;
    explanation.words.emplace_back("head", std::to_string(head.size()) + " bytes");
    return explanation;
  }
  /// Stands in for the purger, likewise.
  static net::awaitable<Purger::Answer> purge(net::io_context& io, std::string_view json) {
    Purger::Answer answer{json == "bad" ? 400 : 200, "{\"got\":" + std::string(json) + "}"};
    if (json == "hang") {
      net::steady_timer never(io, net::steady_timer::time_point::max());
      (void)co_await never.async_wait(use_result);
    }
    co_return answer;
  }
  /// Stands in for the keeper of sightings, which answers on a thread of its own.
  void import_sightings(std::function<void(SnapshotImport)> done) {
    const std::lock_guard lock(mutex);
    importers.push_back(std::move(done));
    asked.notify_one();
  }
  std::function<void(SnapshotImport)> next_importer() {
    std::unique_lock lock(mutex);
    asked.wait(lock, [this] { return !importers.empty(); });
    auto done = std::move(importers.front());
    importers.erase(importers.begin());
    return done;
  }
  std::mutex mutex;
  std::condition_variable asked;
  std::vector<std::function<void(SnapshotImport)>> importers;  // guarded by mutex

  Metrics metrics;
  std::atomic<bool> is_draining{false};
  Admin admin{metrics, [this] { return is_draining.load(); }, explain, purge,
              [this](auto done) { import_sightings(std::move(done)); }};
  std::uint16_t port = 0;
};

TEST_F(AdminTest, TellsHealth) {
  const RawResponse well = ask("GET", "/healthz");
  EXPECT_EQ(well.status, 200);
  EXPECT_EQ(well.body, "ok\n");
  is_draining = true;
  const RawResponse draining = ask("GET", "/healthz");
  EXPECT_EQ(draining.status, 503);
  EXPECT_EQ(draining.body, "draining\n");
}

TEST_F(AdminTest, ExposesMetrics) {
  const RawResponse page = ask("GET", "/metrics");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.field("Content-Type"), "text/plain; version=0.0.4");
  EXPECT_NE(page.body.find("test_things_total 7"), std::string::npos);
  const RawResponse head = ask("HEAD", "/metrics");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.field("Content-Length"), std::to_string(page.body.size()));
}

TEST_F(AdminTest, RefusesTheRest) {
  EXPECT_EQ(ask("GET", "/").status, 404);
  EXPECT_EQ(ask("GET", "/metrics/x").status, 404);
  const RawResponse post = ask("POST", "/metrics");
  EXPECT_EQ(post.status, 405);
  EXPECT_EQ(post.field("Allow"), "GET, HEAD");
}

TEST_F(AdminTest, ExplainsRequests) {
  const RawResponse answer = ask("POST", "/explain", "GET /a HTTP/1.1\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("Content-Type"), "application/json");
  EXPECT_EQ(answer.field("Cache-Control"), "no-store");
  EXPECT_EQ(answer.body,
            "{\"facts\":{\"head\":\"GET /a HTTP/1.1\\r\\n\\r\\n\"},"
            "\"words\":[[\"head\",\"19 bytes\"]]}\n");
}

TEST_F(AdminTest, RefusesWhatCannotBeExplained) {
  const RawResponse bad = ask("POST", "/explain", "bad");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body, "{\"error\":\"it is \\\"bad\\\"\"}\n");
  for (const char* method : {"GET", "PUT", "DELETE"}) {
    const RawResponse refused = ask(method, "/explain");
    EXPECT_EQ(refused.status, 405) << method;
    EXPECT_EQ(refused.field("Allow"), "POST") << method;
  }
  EXPECT_EQ(ask("POST", "/explain/more").status, 404);
}

TEST_F(AdminTest, PassesPurgesOnAndTheirAnswersBack) {
  const RawResponse good = ask("POST", "/purge", "{}");
  EXPECT_EQ(good.status, 200);
  EXPECT_EQ(good.body, "{\"got\":{}}\n");
  EXPECT_EQ(good.field("Content-Type"), "application/json");
  EXPECT_EQ(good.field("Cache-Control"), "no-store");
  EXPECT_EQ(ask("POST", "/purge", "bad").status, 400);
  EXPECT_EQ(ask("POST", "/purge/x", "{}").status, 404);
  for (const char* method : {"GET", "PUT", "DELETE", "HEAD"}) {
    const RawResponse refused = ask(method, "/purge");
    EXPECT_EQ(refused.status, 405) << method;
    EXPECT_EQ(refused.field("Allow"), "POST") << method;
  }
}

TEST_F(AdminTest, TakesBodiesOf64KiBAndNoMore) {
  EXPECT_EQ(ask("POST", "/explain", std::string(64U << 10, 'x')).status, 200);
  for (const std::size_t bytes : {(64U << 10) + 1, 200'000U}) {
    const RawResponse refused = ask("POST", "/explain", std::string(bytes, 'x'));
    EXPECT_EQ(refused.status, 413) << bytes;
    EXPECT_EQ(refused.body, "{\"error\":\"a body of more than 64 KiB\"}\n") << bytes;
  }
  RawClient chunked(port);
  chunked.send("POST /explain HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n11170\r\n" +
               std::string(0x11170, 'x') + "\r\n0\r\n\r\n");
  EXPECT_EQ(chunked.read_response("POST").status, 413);
}

TEST_F(AdminTest, KeepsConnections) {
  RawClient client(port);
  for (int i = 0; i < 3; ++i) {
    client.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.read_response().body, "ok\n");
  }
  client.send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_response().body, "ok\n");
  EXPECT_TRUE(client.wait_closed());
}

TEST_F(AdminTest, ClosesBadRequestsAndLargeHeads) {
  for (const std::string& text : {std::string("nonsense\r\n\r\n"),
                                  "GET / HTTP/1.1\r\nX: " + std::string(9000, 'x') + "\r\n\r\n"}) {
    RawClient client(port);
    client.send(text);
    EXPECT_TRUE(client.wait_closed());
  }
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(AdminTest, ServesAtMost512Connections) {
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 512; ++i) {
    clients.push_back(std::make_unique<RawClient>(port));
    clients.back()->send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    ASSERT_EQ(clients.back()->read_response().status, 200);
  }
  RawClient over(port);
  EXPECT_TRUE(over.wait_closed());
  clients.front()->send("GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(clients.front()->wait_closed());
  EXPECT_EQ(ask("GET", "/healthz").status, 200);
}

TEST_F(AdminTest, TellsHealthWhilePurgesWaitForTheDisk) {
  std::vector<std::unique_ptr<RawClient>> waiting;
  for (int i = 0; i < 128; ++i) {
    waiting.push_back(std::make_unique<RawClient>(port));
    waiting.back()->send("POST /purge HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nhang");
    EXPECT_EQ(ask("GET", "/healthz").status, 200);
  }
  const RawResponse refused = ask("POST", "/purge", "x");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.body, "{\"errors\":[\"too many purges wait for the disk; try again\"]}\n");
}

constexpr const char* kImport =
    "POST /sightings/import HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";

TEST_F(AdminTest, TellsWhatCameOfAnImport) {
  RawClient client(port);
  client.send(kImport);
  const auto first = next_importer();
  EXPECT_EQ(ask("GET", "/healthz").status, 200) << "meanwhile";
  const RawResponse second = ask("POST", "/sightings/import");
  EXPECT_EQ(second.status, 503);
  EXPECT_NE(second.body.find("another import is under way"), std::string::npos) << second.body;
  SnapshotImport import;
  import.merged = 2;
  import.new_bits = 7;
  first(import);
  const RawResponse answer = client.read_response("POST");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("Content-Type"), "application/json");
  EXPECT_EQ(answer.body,
            "{\"merged\":2,\"refused\":0,\"new_bits\":7,\"damaged_bytes\":0,\"kept\":true,"
            "\"reason\":\"\"}\n");

  client.send(kImport);
  next_importer()(refuse_import("too full"));
  const RawResponse refused = client.read_response("POST");
  EXPECT_EQ(refused.status, 409);
  EXPECT_NE(refused.body.find("too full"), std::string::npos) << refused.body;
}

TEST_F(AdminTest, ImportsForNoWebPageAndByPostOnly) {
  RawClient page(port);
  page.send(
      "POST /sightings/import HTTP/1.1\r\nHost: a\r\nOrigin: http://a\r\n"
      "Content-Length: 0\r\n\r\n");
  EXPECT_EQ(page.read_response("POST").status, 403);
  const RawResponse get = ask("GET", "/sightings/import");
  EXPECT_EQ(get.status, 405);
  EXPECT_EQ(get.field("Allow"), "POST");
  EXPECT_TRUE(importers.empty());
  Admin without(
      metrics, [] { return false; }, explain, purge);
  const auto bound = without.start({"127.0.0.1", 0});
  ASSERT_TRUE(bound);
  RawClient client(bound->port());
  client.send(kImport);
  EXPECT_EQ(client.read_response("POST").status, 404);
}

TEST_F(AdminTest, EndsWhileAnImportIsUnderWay) {
  auto other = std::make_unique<Admin>(
      metrics, [] { return false; }, explain, purge,
      [this](auto done) { import_sightings(std::move(done)); });
  const auto bound = other->start({"127.0.0.1", 0});
  ASSERT_TRUE(bound);
  RawClient client(bound->port());
  client.send(kImport);
  const auto late = next_importer();
  other.reset();
  EXPECT_TRUE(client.wait_closed());
  late(refuse_import("nobody waits"));
}

TEST_F(AdminTest, AsksForABodyThatIsAnnounced) {
  RawClient client(port);
  client.send(
      "POST /purge HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("7");
  EXPECT_EQ(client.read_response("POST").body, "{\"got\":7}\n");
}

TEST_F(AdminTest, RefusesAPortInUse) {
  Admin second(
      metrics, [] { return false; }, explain, purge);
  EXPECT_EQ(second.start({"127.0.0.1", port}).error(), net::error::address_in_use);
}

}  // namespace
}  // namespace secondsight::proxy
