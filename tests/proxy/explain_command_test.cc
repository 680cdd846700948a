#include "proxy/explain_command.h"

#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/raw_client.h"
#include "tests/support/scripted_origin.h"

namespace secondsight::proxy {
namespace {

using secondsight::test::answer_always;
using secondsight::test::refusing_port;
using secondsight::test::ScriptedOrigin;
using Fields = std::vector<std::string>;

TEST(ExplainCommand, RequestHeads) {
  struct Row {
    const char* url;
    Fields fields;
    const char* head;
    const char* method = "GET";
  };
  for (const Row& row : {
           Row{"http://a.test/b?c=d", {}, "GET /b?c=d HTTP/1.1\r\nHost: a.test\r\n\r\n"},
           Row{"HTTPS://A.test:8443", {}, "GET / HTTP/1.1\r\nHost: A.test:8443\r\n\r\n"},
           Row{"http://a?q", {}, "GET /?q HTTP/1.1\r\nHost: a\r\n\r\n"},
           Row{"http://[::1]:80/a|b", {}, "GET /a|b HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"},
           Row{"http://a/b#fragment", {}, "GET /b HTTP/1.1\r\nHost: a\r\n\r\n"},
           Row{"http://a/b", {"host: other"}, "GET /b HTTP/1.1\r\nhost: other\r\n\r\n"},
           Row{"/b", {"Host: a"}, "GET /b HTTP/1.1\r\nHost: a\r\n\r\n"},
           Row{"http://a/",
               {"A: 1", "A:"},
               "HEAD / HTTP/1.1\r\nHost: a\r\nA: 1\r\nA:\r\n\r\n",
               "HEAD"},
       }) {
    const auto head = make_request_head(row.method, row.url, row.fields);
    ASSERT_TRUE(std::holds_alternative<std::string>(head)) << std::get<BadUsage>(head).reason;
    EXPECT_EQ(std::get<std::string>(head), row.head);
  }
}

TEST(ExplainCommand, WhatIsNoRequest) {
  struct Row {
    const char* url;
    Fields fields = {};
    const char* method = "GET";
  };
  for (const Row& row : {
           Row{""},
           Row{"a"},
           Row{"a.test/b"},
           Row{"ftp://a/b"},
           Row{"http://"},
           Row{"http:///b"},
           Row{"http://a/b c"},
           Row{"http://a/b\r\nX: y"},
           Row{"http://a/\xc3\xa4"},
           Row{"http://user@a/b"},
           Row{"http://a:99999/"},
           Row{"http://a b/"},
           Row{"/path"},
           Row{"/path", {"Accept: x"}},
           Row{"http://a/", {"no colon"}},
           Row{"http://a/", {": value"}},
           Row{"http://a/", {"Na me: value"}},
           Row{"http://a/", {"A: b\r\nC: d"}},
           Row{"http://a/", {"Host: a", "Host: b"}},
           Row{"http://a/", {"Content-Length: x"}},
           Row{"http://a/", {"A: " + std::string(70'000, 'x')}},
           Row{"http://a/", {}, "G T"},
           Row{"http://a/", {}, ""},
           Row{"http://a/", {}, "CONNECT"},
       }) {
    EXPECT_TRUE(
        std::holds_alternative<BadUsage>(make_request_head(row.method, row.url, row.fields)))
        << row.url << " " << row.method << " " << (row.fields.empty() ? "" : row.fields[0]);
  }
}

struct CommandRun {
  int code;
  std::string out, error;
};

CommandRun run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "explain");
  std::ostringstream out;
  std::ostringstream error;
  const int code = run_explain(static_cast<int>(arguments.size()), arguments.data(), out, error);
  return {code, out.str(), error.str()};
}

/// What the admin listener answers, and what then is printed.
CommandRun run_against(const std::string& status, const std::string& body, bool as_json = false) {
  ScriptedOrigin admin(answer_always("HTTP/1.1 " + status + "\r\nContent-Length: " +
                                     std::to_string(body.size()) + "\r\n\r\n" + body));
  const std::string address = "127.0.0.1:" + std::to_string(admin.port());
  std::vector<const char*> arguments{"http://a/b", "-H", "A: 1", "--admin", address.c_str()};
  if (as_json) arguments.push_back("--json");
  CommandRun result = run(arguments);
  EXPECT_EQ(admin.requests().size(), 1U);
  const std::string request = admin.requests().front();
  EXPECT_TRUE(request.starts_with("POST /explain HTTP/1.1\r\n")) << request;
  EXPECT_TRUE(request.ends_with("\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\nA: 1\r\n\r\n")) << request;
  return result;
}

TEST(ExplainCommand, PrintsWordsAlignedOrTheFacts) {
  const std::string answer =
      R"({"facts":{"stored":false},"words":[["stored","no"],["a long label here","b"]]})";
  const CommandRun words = run_against("200 OK", answer);
  EXPECT_EQ(words.code, 0) << words.error;
  EXPECT_EQ(words.out, "stored       no\na long label here b\n");
  const CommandRun facts = run_against("200 OK", answer, true);
  EXPECT_EQ(facts.code, 0);
  EXPECT_EQ(facts.out, "{\"stored\":false}\n");
}

TEST(ExplainCommand, WhatIsNoExplanationIsOne) {
  for (const auto& [status, body] : std::vector<std::pair<std::string, std::string>>{
           {"404 Not Found", "not found\n"},
           {"200 OK", "hello"},
           {"200 OK", "[]"},
           {"200 OK", R"({"facts":{}})"},
           {"200 OK", R"({"facts":1,"words":[["a"]]})"},
           {"200 OK", R"({"facts":{},"words":[1]})"},
           {"500 Oops", R"({"facts":{},"words":[]})"}}) {
    const CommandRun result = run_against(status, body);
    EXPECT_EQ(result.code, 1) << body;
    EXPECT_NE(result.error.find("not as secondsight does"), std::string::npos) << result.error;
    EXPECT_EQ(result.out, "") << body;
  }
  const std::string nobody = "127.0.0.1:" + std::to_string(refusing_port());
  const CommandRun result = run({"http://a/b", "--admin", nobody.c_str()});
  EXPECT_EQ(result.code, 1);
  EXPECT_NE(result.error.find("cannot ask the proxy at " + nobody), std::string::npos);
}

TEST(ExplainCommand, BadUsageIsTwo) {
  EXPECT_EQ(run_against("400 Bad Request", R"({"error":"header-too-large"})").code, 2);
  for (const auto& arguments :
       std::vector<std::vector<const char*>>{{},
                                             {"http://a/b", "http://c/d"},
                                             {"not a url"},
                                             {"http://a/b", "-H"},
                                             {"http://a/b", "-H", "none"},
                                             {"http://a/b", "--admin", "here"},
                                             {"http://a/b", "--admin", "127.0.0.1:0"},
                                             {"http://a/b", "--config", "/no/such/file"},
                                             {"http://a/b", "--no-such-option"}}) {
    const CommandRun result = run(arguments);
    EXPECT_EQ(result.code, 2) << result.error;
    EXPECT_TRUE(result.error.starts_with("secondsight: ")) << result.error;
  }
  const CommandRun help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("--header"), std::string::npos);
}

}  // namespace
}  // namespace secondsight::proxy
