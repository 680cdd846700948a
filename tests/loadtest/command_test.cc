#include <array>
#include <cstdio>
#include <future>
#include <gmock/gmock.h>
#include <string>
#include <sys/wait.h>

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

#include "loadtest/origin.h"
#include "tests/loadtest/run_command.h"
#include "tests/loadtest/scripted_server.h"
#include "tests/loadtest/test_files.h"

namespace secondsight::loadtest {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string proxy() {
  return std::string("--proxy '") + SECONDSIGHT_FAKE_PROXY + "' ";
}

TEST(Command, HelpOfEachIsOnStandardOutput) {
  EXPECT_EQ(run("--help").code, 0);
  for (const std::string name : {"demo", "replay", "simulate", "filter", "origin", "workload"}) {
    const Ran ran = run(name + " --help");
    EXPECT_EQ(ran.code, 0) << name;
    EXPECT_THAT(ran.text, HasSubstr("usage: secondsight-load " + name)) << name;
    EXPECT_THAT(run("--help").text, HasSubstr(name)) << name;
  }
}

TEST(Command, BadUsageSaysWhatIsWrongAndEndsWithTwo) {
  struct Case {
    const char* arguments;
    const char* says;
  };
  for (const Case& c : {
           Case{"", "usage: "},
           Case{"fly", "there is no command 'fly'"},
           Case{"demo", "--proxy is needed"},
           Case{"demo --proxy x", "--out is needed"},
           Case{"demo --bogus", "unrecognised option '--bogus'"},
           Case{"demo --proxy x --out y --connections 0", "--connections"},
           Case{"demo --proxy x --out y --model ocean", "no model is called 'ocean'"},
           Case{"workload --requests many", "many"},
           Case{"workload --requests -5", "--requests: not within"},
           Case{"workload surplus", "positional"},
           Case{"replay", "one of --proxy and --url"},
           Case{"replay --proxy a --url http://127.0.0.1:1", "one of --proxy and --url"},
           Case{"replay --proxy a --pid 1", "belong to --url"},
           Case{"replay --url ftp://127.0.0.1:1", "must start with http://"},
           Case{"replay --url http://name:1", "is not http://ADDRESS:PORT"},
           Case{"replay --url http://127.0.0.1:1 --admin x", "--admin"},
           Case{"replay --url http://127.0.0.1:1 --rate -1", "--rate"},
           Case{"filter --keys many", "--keys: 'many' is no number"},
           Case{"filter --keys 1,,2", "--keys: '' is no number"},
           Case{"filter --keys 0", "expected_keys = 0"},
           Case{"filter --rate 0.5", "defeats the filter"},
           Case{"filter --window soon", "--window: 'soon' is no time"},
           Case{"filter --window 20ms", "shorter than the 1s280ms"},
           Case{"filter --load-factor 1", "--load-factor: "},
           Case{"filter --load-factor nan", "--load-factor: "},
           Case{"filter stray", "positional"},
           Case{"origin --listen nowhere", "is not ADDRESS:PORT"},
           Case{"origin --threads 0", "--threads"},
       }) {
    const Ran ran = run(c.arguments);
    EXPECT_EQ(ran.code, 2) << c.arguments << '\n' << ran.text;
    EXPECT_THAT(ran.text, HasSubstr(c.says)) << c.arguments;
  }
}

TEST(Command, WhatTheWorldRefusesEndsWithOne) {
  const TemporaryDirectory directory;
  EXPECT_EQ(run("workload --trace '" + directory.path("absent") + "'").code, 1);
  EXPECT_THAT(run("workload --trace '" + directory.write("empty", "") + "'").text,
              HasSubstr("holds no request"));
  const Ran ran = run("demo --proxy '" + directory.path("absent") + "' --out '" +
                      directory.path("out") + "' --requests 10");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, HasSubstr("cannot run"));
}

TEST(Command, FilterTellsWhatEachSizeCostsAndDoes) {
  const Ran ran = run("filter --keys 50000000,1000000 --window 12h --load-factor 4");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.text, AllOf(HasSubstr("filter  132 MiB for 50000000 keys"),
                              HasSubstr("\n\nfilter  4 MiB for 1000000 keys"),
                              HasSubstr("at 4 times the planned keys a generation lasts 3h"),
                              HasSubstr("to spare: these 4 MiB")));
}

TEST(Command, WorkloadDescribesAndWritesOut) {
  const TemporaryDirectory directory;
  const std::string csv = directory.path("out.csv");
  const Ran model = run("workload --requests 3000 --seed 5 --csv '" + csv + "'");
  EXPECT_EQ(model.code, 0);
  EXPECT_THAT(model.text, AllOf(HasSubstr("edge-web"), HasSubstr("3,000")));
  // What was written is the same traffic.
  const Ran trace = run("workload --trace '" + csv + "'");
  EXPECT_EQ(trace.text.substr(trace.text.find('\n')), model.text.substr(model.text.find('\n')));
}

TEST(Command, BadLinesAreShownAndNotFatal) {
  const TemporaryDirectory directory;
  const std::string csv = directory.write("trace", "0,a,1\noops\n1,a,2\n");
  const Ran ran = run("workload --trace '" + csv + "'");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.text, AllOf(HasSubstr("1 of 3 lines"), HasSubstr("line 2: "),
                              HasSubstr("1 requests tell another size")));
}

TEST(Command, DemoComparesTwoPoliciesAndLeavesItsReport) {
  const TemporaryDirectory directory;
  const std::string out = directory.path("out");
  for (int round = 0; round < 2; ++round) {  // a second one finds the first one's leftovers
    const Ran ran = run("demo " + proxy() + "--out '" + out + "' --requests 2000 --connections 4");
    EXPECT_EQ(ran.code, 0) << ran.text;
    EXPECT_THAT(ran.text, HasSubstr("filter: 2 MiB for "));
    EXPECT_THAT(ran.text, testing::ContainsRegex("always +second-sighting"));
    EXPECT_THAT(ran.text, HasSubstr("writes avoided: 90.00 % of objects, 90.00 % of bytes"));
  }
  const auto report = boost::json::parse(read_text(out + "/report.json")).as_object();
  EXPECT_EQ(report.at("trace"), "edge-web");
  EXPECT_DOUBLE_EQ(report.at("avoided").at("objects").to_number<double>(), 0.9);
  const auto& runs = report.at("runs").as_array();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].at("policy"), "always");
  EXPECT_EQ(runs[1].at("policy"), "second-sighting");
  for (const auto& one : runs) {
    EXPECT_EQ(one.at("requests").to_number<int>(), 2'000);
    EXPECT_EQ(one.at("errors").to_number<int>(), 0);
    EXPECT_EQ(one.at("corrupt_bodies").to_number<int>(), 0);
    EXPECT_TRUE(one.at("kernel_write_bytes").is_number());
  }
  EXPECT_THAT(read_text(out + "/second-sighting.log"), HasSubstr("info ready"));
  EXPECT_THAT(read_text(out + "/always.toml"), HasSubstr("policy = \"always\""));
}

TEST(Command, ReplayStartsAProxyOrDrivesOne) {
  const TemporaryDirectory directory;
  const std::string json = directory.path("r.json");
  const Ran started = run("replay " + proxy() + "--dir '" + directory.path("d") +
                          "' --requests 500 " + "--rate 100000 --json '" + json + "'");
  EXPECT_EQ(started.code, 0) << started.text;
  EXPECT_DOUBLE_EQ(
      boost::json::parse(read_text(json)).at("runs").at(0).at("rate").to_number<double>(), 100'000);
  const auto origin = Origin::start({});
  ASSERT_TRUE(origin);
  const Ran running = run("replay --url " + (*origin)->url() + " --requests 500");
  EXPECT_EQ(running.code, 0) << running.text;
  EXPECT_EQ((*origin)->counters().fetches, 500u);
}

TEST(Command, FailedResponsesFailTheCommand) {
  std::string nobody;
  {
    const auto origin = Origin::start({});
    nobody = (*origin)->url();
  }
  const Ran ran = run("replay --url " + nobody + " --requests 5");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, HasSubstr("connect-failed"));
}

TEST(Command, ASignalEndsTheRunEarly) {
  for (const int signal : {SIGINT, SIGTERM}) {
    std::promise<void> asked;
    ScriptedServer server([&](const std::string&) {
      asked.set_value();
      return ScriptedServer::Reply{"", false, true};
    });
    const std::string url = "http://127.0.0.1:" + std::to_string(server.endpoint().port());
    const pid_t child = fork();
    if (child == 0) {
      execl(SECONDSIGHT_LOAD_BINARY, SECONDSIGHT_LOAD_BINARY, "replay", "--url", url.c_str(),
            "--connections", "1", "--requests", "9", nullptr);
      _exit(127);
    }
    asked.get_future().wait();
    kill(child, signal);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
  }
}

TEST(Command, DemoOnARecordedTrace) {
  const std::string path = recorded_trace("wikicdn-2018-10k.csv.gz");
  NEED_RECORDED_TRACE(path);
  const TemporaryDirectory directory;
  const Ran ran = run("demo " + proxy() + "--out '" + directory.path("out") +
                      "' --requests 1000 --trace '" + path + "'");
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("wikicdn-2018-10k.csv.gz: 1,000 requests"));
}

}  // namespace
}  // namespace secondsight::loadtest
