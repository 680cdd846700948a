#include "loadtest/driver.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <mutex>
#include <string>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "loadtest/body.h"
#include "loadtest/http_get.h"
#include "loadtest/measured_run.h"
#include "loadtest/object_url.h"
#include "loadtest/origin.h"
#include "loadtest/workload.h"
#include "tests/loadtest/scripted_server.h"

namespace secondsight::loadtest {
namespace {

using testing::HasSubstr;

Plan plan_of(std::uint64_t requests, std::uint64_t seed = 1) {
  ModelSource source(edge_web(requests), seed);
  return make_plan(source);
}

/// One object asked `times` times.
Plan plan_of_one(std::uint64_t size_bytes, std::uint32_t times = 1) {
  Plan plan;
  plan.objects.push_back({object_target("key", size_bytes), size_bytes, times});
  plan.requests.assign(times, 0);
  return plan;
}

DriveOptions to(const tcp::endpoint& server, unsigned connections = 4) {
  DriveOptions options;
  options.server = server;
  options.host = "edge.test";
  options.connections = connections;
  return options;
}

std::uint64_t count(const DriveResult& result, Outcome outcome) {
  return result.outcomes[static_cast<std::size_t>(outcome)];
}

std::string body_of(const std::string& target) {
  const auto name = parse_object_target(target);
  const Body body(name->name, name->size_bytes);
  std::string text;
  while (text.size() < body.size_bytes()) {
    for (const std::byte b : body.run_at(text.size())) text += static_cast<char>(b);
  }
  return text;
}

std::string response(const std::string& body, const std::string& fields = "") {
  return "HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

TEST(Driver, ClosedLoopAgainstTheOriginVerifiesEverything) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  const Plan plan = plan_of(2'000);
  for (const unsigned connections : {1u, 16u}) {
    const std::uint64_t before = (*origin)->counters().fetches;
    const DriveResult result = drive(plan, to((*origin)->endpoint(), connections));
    EXPECT_EQ(result.requests, 2'000u);
    EXPECT_EQ(count(result, Outcome::Ok), 2'000u) << testing::PrintToString(result.examples);
    EXPECT_EQ(result.errors, 0u);
    EXPECT_EQ(result.corrupt_bodies, 0u);
    EXPECT_EQ(result.body_bytes, plan.requested_bytes);
    EXPECT_EQ(result.latency.count(), 2'000u);
    EXPECT_EQ(result.hits, 0u);
    EXPECT_EQ((*origin)->counters().fetches - before, 2'000u);
  }
}

using SteadyClock = std::chrono::steady_clock;

/// Answers truly and keeps when each request came.
struct TimedServer {
  std::mutex mutex;
  std::vector<SteadyClock::time_point> came;
  ScriptedServer server{[this](const std::string& target) {
    const std::lock_guard lock(mutex);
    came.push_back(SteadyClock::now());
    return ScriptedServer::Reply{response(body_of(target))};
  }};
};

// Both tests compare the driver's clock with the server's; what they claim holds however slow
// either is.
TEST(Driver, OpenLoopStartsNoRequestBeforeItsTime) {
  TimedServer timed;
  DriveOptions options = to(timed.server.endpoint(), 1);
  options.rate = 2'000;
  const auto started = SteadyClock::now();
  const DriveResult result = drive(plan_of_one(10, 200), options);
  EXPECT_EQ(count(result, Outcome::Ok), 200u);
  ASSERT_EQ(timed.came.size(), 200u);
  for (std::size_t i = 0; i < timed.came.size(); ++i) {
    EXPECT_GE(timed.came[i] - started, std::chrono::microseconds(500) * i) << i;
  }
}

// All are due at once on one connection: each one's latency spans those before it.
TEST(Driver, OpenLoopCountsTheWaitForAConnection) {
  TimedServer timed;
  DriveOptions options = to(timed.server.endpoint(), 1);
  options.rate = 1e9;
  const DriveResult result = drive(plan_of_one(10, 500), options);
  EXPECT_EQ(count(result, Outcome::Ok), 500u);
  ASSERT_EQ(timed.came.size(), 500u);
  const auto spread = timed.came.back() - timed.came.front() - std::chrono::nanoseconds(500);
  EXPECT_GE(std::chrono::nanoseconds(result.latency.max()), spread);
  EXPECT_GE(result.latency.mean(), 0.1 * static_cast<double>(spread.count()));
}

TEST(Driver, HandsRequestsOutInOrder) {
  std::mutex mutex;
  std::vector<std::string> seen;
  ScriptedServer server([&](const std::string& target) {
    const std::lock_guard lock(mutex);
    seen.push_back(target);
    return ScriptedServer::Reply{response(body_of(target))};
  });
  const Plan plan = plan_of(300);
  const DriveResult result = drive(plan, to(server.endpoint(), 1));
  EXPECT_EQ(result.errors, 0u);
  ASSERT_EQ(seen.size(), plan.requests.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i], plan.objects[plan.requests[i]].target) << i;
  }
  EXPECT_EQ(server.connections(), 1u);
}

TEST(Driver, ReadsWhatTheCacheSays) {
  std::atomic<int> number{0};
  ScriptedServer server([&](const std::string& target) {
    constexpr const char* kSays[] = {"secondsight; hit; detail=memory",
                                     "secondsight; hit",
                                     "other; hit",
                                     "secondsight; fwd=uri-miss; stored; detail=first-sighting",
                                     "secondsight; fwd=uri-miss; stored; detail=repeat",
                                     "secondsight; fwd=uri-miss; detail=repeat",
                                     "secondsight; fwd=uri-miss; stored; detail=always"};
    const std::string field = kSays[number++ % 7];
    return ScriptedServer::Reply{response(body_of(target), "Cache-Status: " + field + "\r\n")};
  });
  Plan plan;
  for (std::uint32_t i = 0; i < 14; ++i) {
    plan.objects.push_back({object_target("k" + std::to_string(i), 100), 100, i < 7 ? 1u : 2u});
    plan.requests.push_back(i);
  }
  const DriveResult result = drive(plan, to(server.endpoint(), 1));
  EXPECT_EQ(result.hits, 4u);
  EXPECT_EQ(result.hit_bytes, 400u);
  EXPECT_EQ(result.details.at("memory"), 2u);
  EXPECT_EQ(result.details.at("repeat"), 4u);
  EXPECT_EQ(result.details.at("first-sighting"), 2u);
  EXPECT_EQ(result.one_hit_written, 2u) << "stored with repeat or always, of objects asked once";
}

TEST(Driver, NoticesALyingOrigin) {
  struct Case {
    const char* name;
    Outcome outcome;
    std::function<ScriptedServer::Reply(const std::string& body)> lie;
  };
  const Case cases[] = {
      {"a wrong byte", Outcome::WrongBytes,
       [](std::string body) {
         body[body.size() / 2] = static_cast<char>(body[body.size() / 2] ^ 0x20);
         return ScriptedServer::Reply{response(body)};
       }},
      {"a short body", Outcome::WrongLength,
       [](std::string body) { return ScriptedServer::Reply{response(body.substr(1))}; }},
      {"a long body", Outcome::WrongLength,
       [](std::string body) { return ScriptedServer::Reply{response(body + "x")}; }},
      {"a cut body", Outcome::Disconnected,
       [](std::string body) {
         std::string text = response(body);
         text.resize(text.size() - 1);
         return ScriptedServer::Reply{text, true};
       }},
      {"a cut head", Outcome::Disconnected,
       [](std::string) {
         return ScriptedServer::Reply{"HTTP/1.1 200 OK\r\nConte", true};
       }},
      {"no answer", Outcome::Disconnected,
       [](std::string) {
         return ScriptedServer::Reply{"", true};
       }},
      {"another status", Outcome::WrongStatus,
       [](std::string body) {
         return ScriptedServer::Reply{"HTTP/1.1 203 Fine\r\nContent-Length: " +
                                      std::to_string(body.size()) + "\r\n\r\n" + body};
       }},
      {"an error page", Outcome::WrongStatus,
       [](std::string) {
         return ScriptedServer::Reply{"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 3\r\n\r\nbad"};
       }},
      {"surplus bytes", Outcome::Malformed,
       [](std::string body) { return ScriptedServer::Reply{response(body) + "more"}; }},
      {"no HTTP", Outcome::Malformed,
       [](std::string) { return ScriptedServer::Reply{"SSH-2.0-OpenSSH\r\n\r\n"}; }},
      {"an endless head", Outcome::Malformed,
       [](std::string) {
         return ScriptedServer::Reply{"HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x')};
       }},
  };
  for (const Case& c : cases) {
    ScriptedServer server([&](const std::string& target) { return c.lie(body_of(target)); });
    const DriveResult result = drive(plan_of_one(1'000, 3), to(server.endpoint(), 2));
    EXPECT_EQ(result.requests, 3u) << c.name;
    EXPECT_EQ(count(result, c.outcome), 3u) << c.name << testing::PrintToString(result.outcomes);
    const bool corrupt = facts_of(c.outcome).corrupt;
    EXPECT_EQ(result.corrupt_bodies, corrupt ? 3u : 0u) << c.name;
    EXPECT_EQ(result.errors, corrupt ? 0u : 3u) << c.name;
    ASSERT_FALSE(result.examples.empty()) << c.name;
    EXPECT_THAT(result.examples.front(), HasSubstr("/o/key/1000: "));
    EXPECT_EQ(result.latency.count(), 0u) << "failures are no latency";
  }
}

TEST(Driver, OneLieAmongManyIsNoticed) {
  std::atomic<int> number{0};
  ScriptedServer server([&](const std::string& target) {
    std::string body = body_of(target);
    if (++number == 57 && !body.empty()) body.back() = static_cast<char>(body.back() ^ 1);
    return ScriptedServer::Reply{response(body)};
  });
  const DriveResult result = drive(plan_of(100), to(server.endpoint()));
  EXPECT_EQ(count(result, Outcome::WrongBytes), 1u);
  EXPECT_EQ(count(result, Outcome::Ok), 99u);
}

TEST(Driver, AHangingServerTimesOut) {
  ScriptedServer server([](const std::string&) {
    return ScriptedServer::Reply{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", false, true};
  });
  DriveOptions options = to(server.endpoint(), 2);
  options.timeout = std::chrono::milliseconds(1);
  const DriveResult result = drive(plan_of_one(10, 2), options);
  EXPECT_EQ(count(result, Outcome::TimedOut), 2u);
  EXPECT_EQ(result.errors, 2u);
}

TEST(Driver, NobodyListening) {
  tcp::endpoint nobody;
  {
    const auto origin = Origin::start({});
    nobody = (*origin)->endpoint();
  }
  const DriveResult result = drive(plan_of(50), to(nobody));
  EXPECT_EQ(result.requests, 50u);
  EXPECT_EQ(count(result, Outcome::ConnectFailed), 50u);
}

TEST(Driver, AKeptConnectionMayBeClosedBetweenRequests) {
  // Announces keep-alive, then closes: the next request finds out and goes over a new connection.
  std::atomic<int> number{0};
  ScriptedServer server([&](const std::string& target) {
    return ScriptedServer::Reply{response(body_of(target)), ++number % 3 == 0};
  });
  const DriveResult result = drive(plan_of_one(100, 30), to(server.endpoint(), 1));
  EXPECT_EQ(count(result, Outcome::Ok), 30u) << testing::PrintToString(result.examples);
  EXPECT_EQ(result.reconnects, 9u);
  EXPECT_EQ(server.connections(), 10u);
}

TEST(Driver, AnnouncedCloseAndBodiesEndedByCloseAreFine) {
  ScriptedServer server([](const std::string& target) {
    return ScriptedServer::Reply{"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body_of(target),
                                 true};
  });
  const DriveResult result = drive(plan_of_one(70'000, 5), to(server.endpoint(), 2));
  EXPECT_EQ(count(result, Outcome::Ok), 5u) << testing::PrintToString(result.examples);
  EXPECT_EQ(result.reconnects, 0u);
}

TEST(Driver, LargeAndEmptyBodies) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{48} << 20}) {
    const DriveResult result = drive(plan_of_one(size, 2), to((*origin)->endpoint(), 2));
    EXPECT_EQ(count(result, Outcome::Ok), 2u) << size << testing::PrintToString(result.examples);
    EXPECT_EQ(result.body_bytes, 2 * size);
  }
}

TEST(Driver, AnEmptyPlanEndsAtOnce) {
  const DriveResult result = drive(Plan{}, to(tcp::endpoint()));
  EXPECT_EQ(result.requests, 0u);
}

TEST(Driver, ProgressEndsWithEverythingDone) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  std::vector<DriveProgress> reports;
  DriveOptions options = to((*origin)->endpoint());
  options.on_progress = [&](const DriveProgress& p) { reports.push_back(p); };
  static_cast<void>(drive(plan_of(100), options));
  ASSERT_FALSE(reports.empty());
  EXPECT_EQ(reports.back().done, 100u);
  EXPECT_EQ(reports.back().total, 100u);
}

TEST(HttpGet, FetchesADocumentOrSaysWhyNot) {
  ScriptedServer server([](const std::string& target) {
    if (target == "/hang") return ScriptedServer::Reply{"", false, true};
    if (target == "/cut")
      return ScriptedServer::Reply{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", true};
    if (target == "/large")
      return ScriptedServer::Reply{response(std::string(5u << 20, 'x')), true};
    if (target == "/metrics") return ScriptedServer::Reply{response("a 1\n"), true};
    return ScriptedServer::Reply{"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", true};
  });
  constexpr std::chrono::milliseconds kLong(20'000);
  EXPECT_EQ(*http_get(server.endpoint(), "/metrics", kLong), "a 1\n");
  EXPECT_EQ(http_get(server.endpoint(), "/other", kLong).error(), boost::system::errc::bad_message);
  EXPECT_EQ(http_get(server.endpoint(), "/large", kLong).error(),
            boost::system::errc::message_size);
  EXPECT_FALSE(http_get(server.endpoint(), "/cut", kLong));
  EXPECT_EQ(http_get(server.endpoint(), "/hang", std::chrono::milliseconds(10)).error(),
            boost::system::errc::timed_out);
}

TEST(MeasuredRun, TakesTheRunsOwnShareAndSaysWhatDisagrees) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  // Numbers that stood at 1000 before the run and claim two objects of 50 MB and 999 fetches in it.
  ScriptedServer admin([&](const std::string&) {
    const bool ran = (*origin)->counters().fetches > 0;
    return ScriptedServer::Reply{
        response("secondsight_objects_written_total " + std::string(ran ? "1002" : "1000") +
                 "\nsecondsight_written_bytes_total " + (ran ? "50001000" : "1000") +
                 "\nsecondsight_origin_fetches_total " + (ran ? "1999" : "1000") +
                 "\nsecondsight_writer_queue_bytes 0\nsecondsight_filter_fill_ratio 0.5\n"),
        true};
  });
  ProxyUnderTest proxy;
  proxy.policy = "always";
  proxy.address = (*origin)->endpoint();
  proxy.admin = admin.endpoint();
  proxy.pid = getpid();
  const RunReport report =
      measured_run(plan_of_one(100, 5), proxy, origin->get(), to((*origin)->endpoint()));
  EXPECT_EQ(report.drive.errors, 0u);
  EXPECT_EQ(report.counters.objects_written, 2u);
  EXPECT_EQ(report.counters.bytes_written, 50'000'000u);
  EXPECT_EQ(report.counters.filter_fill, 0.5) << "a gauge stays as it is";
  EXPECT_EQ(report.origin_fetches, 5u);
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("the kernel")));
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("999 origin fetches, the origin 5")));
}

TEST(MeasuredRun, WithoutMetricsItSaysSo) {
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  ProxyUnderTest proxy;
  proxy.address = (*origin)->endpoint();
  proxy.admin = (*origin)->endpoint();  // answers 404
  const RunReport report =
      measured_run(plan_of_one(100, 5), proxy, origin->get(), to((*origin)->endpoint()));
  EXPECT_EQ(report.counters.objects_written, std::nullopt);
  EXPECT_THAT(report.notes, testing::Contains(HasSubstr("metrics cannot be read")));
}

}  // namespace
}  // namespace secondsight::loadtest
