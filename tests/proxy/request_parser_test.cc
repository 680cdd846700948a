#include "proxy/request_parser.h"

#include <cstdlib>
#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "proxy/authority.h"

namespace secondsight::proxy {
namespace {

using Outcome = RequestParser::Outcome;

constexpr RequestLimits kLimits{2048, 16, 1'000'000};

struct Parsed {
  Outcome outcome = Outcome::NeedMore;
  RequestFault fault{};
  std::size_t head_bytes = 0;
  Request request;
};

/// Feeds `text` in pieces that end at `cuts`, each in a buffer of its own so that a view kept from
/// an earlier call is caught.
Parsed parse(const std::string& text, const std::vector<std::size_t>& cuts = {},
             const RequestLimits& limits = kLimits) {
  Parsed parsed;
  RequestParser parser(limits);
  std::vector<std::size_t> ends = cuts;
  ends.push_back(text.size());
  for (const std::size_t end : ends) {
    const auto bytes = std::make_unique<std::string>(text.substr(0, end));
    parsed.outcome = parser.parse(*bytes, parsed.request);
    bytes->assign(bytes->size(), '?');
    if (parsed.outcome != Outcome::NeedMore) break;
  }
  parsed.fault = parser.fault();
  parsed.head_bytes = parser.head_bytes();
  return parsed;
}

std::string describe(const Parsed& parsed) {
  if (parsed.outcome == Outcome::NeedMore) return "more";
  if (parsed.outcome == Outcome::Failed) return std::string(word_of(parsed.fault));
  const Request& r = parsed.request;
  return r.method + ' ' + r.target + ' ' + r.host + ' ' + std::to_string(r.version) + ' ' +
         (r.content_length ? std::to_string(*r.content_length) : "-") +
         (r.chunked ? " chunked" : "") + (r.keep_alive ? " keep" : " close") +
         (r.expects_continue ? " expects" : "") + " [" + std::string(r.fields.text()) + "] " +
         std::to_string(parsed.head_bytes);
}

struct BadCase {
  const char* name;
  std::string text;
  RequestFault fault;
};

std::string get(const std::string& fields) {
  return "GET / HTTP/1.1\r\n" + fields + "\r\n";
}
std::string post(const std::string& fields) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
std::string target(const std::string& text) {
  return "GET " + text + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

const std::vector<BadCase>& bad_cases() {
  using enum RequestFault;
  static const std::vector<BadCase> cases{
      {"no version", "GET /\r\n\r\n", RequestLine},
      {"one word", "GET\r\n\r\n", RequestLine},
      {"no target", "GET  HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"space in target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"tab as separator", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"space before method", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"space after version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", RequestLine},
      {"separator in method", "GE(T / HTTP/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"short version", "GET / HTTP/1\r\nHost: a\r\n\r\n", RequestLine},
      {"long version", "GET / HTTP/1.11\r\nHost: a\r\n\r\n", RequestLine},
      {"lower case version", "GET / http/1.1\r\nHost: a\r\n\r\n", RequestLine},
      {"cut version", "GET / HTT\r\n\r\n", RequestLine},
      {"too many empty lines", "\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n\r\n", RequestLine},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Version},
      {"HTTP/0.9 named", "GET / HTTP/0.9\r\nHost: a\r\n\r\n", Version},
      {"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", Version},
      {"HTTP/3.0", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", Version},
      {"CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", Method},
      {"authority form", target("a:443"), Target},
      {"relative target", target("index.html"), Target},
      {"asterisk for GET", target("*"), Target},
      {"asterisk with more", "OPTIONS *a HTTP/1.1\r\nHost: a\r\n\r\n", Target},
      {"fragment", target("/a#b"), Target},
      {"non-ASCII target", target("/\xc3\xa4"), Target},
      {"other scheme", target("ftp://a/"), Target},
      {"no authority", target("http:///x"), Target},
      {"user information", target("http://me@a/"), Target},
      {"bad port in target", target("http://a:99999/"), Target},
      {"no Host", get(""), Host},
      {"empty Host", get("Host: \r\n"), Host},
      {"two Hosts", get("Host: a\r\nHost: a\r\n"), Host},
      {"two Hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", Host},
      {"Host with path", get("Host: a/b\r\n"), Host},
      {"Host with user", get("Host: me@a\r\n"), Host},
      {"Host list", get("Host: a, b\r\n"), Host},
      {"Host with bad port", get("Host: a:x\r\n"), Host},
      {"Host with open bracket", get("Host: [::1\r\n"), Host},
      {"bad Host beside absolute form", "GET http://a/ HTTP/1.1\r\nHost: b/c\r\n\r\n", Host},
      {"no Host beside absolute form", "GET http://a/ HTTP/1.1\r\n\r\n", Host},
      {"space before colon", get("Host: a\r\nX : b\r\n"), FieldLine},
      {"tab before colon", get("Host: a\r\nX\t: b\r\n"), FieldLine},
      {"empty name", get("Host: a\r\n: b\r\n"), FieldLine},
      {"no colon", get("Host: a\r\nX\r\n"), FieldLine},
      {"non-token name", get("Host: a\r\nX{: b\r\n"), FieldLine},
      {"non-ASCII name", get("Host: a\r\nX\xe4: b\r\n"), FieldLine},
      {"bad Connection", get("Host: a\r\nConnection: a b\r\n"), FieldLine},
      {"folded by space", get("Host: a\r\nX: b\r\n c\r\n"), FoldedField},
      {"folded by tab", get("Host: a\r\nX: b\r\n\tc\r\n"), FoldedField},
      {"space before the first field", get(" Host: a\r\n"), FoldedField},
      {"bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n", LineEnding},
      {"bare LF after a field", get("Host: a\n"), LineEnding},
      {"bare LF at the end", "GET / HTTP/1.1\r\nHost: a\r\n\n", LineEnding},
      {"bare LF before", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", LineEnding},
      {"bare CR in a value", get("Host: a\r\nX: b\rc\r\n"), LineEnding},
      {"bare CR in the target", "GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", LineEnding},
      {"two CR", get("Host: a\r\r\n"), LineEnding},
      {"NUL in a value", get(std::string("Host: a\r\nX: b\0c\r\n", 16)), ControlByte},
      {"NUL in the target", std::string("GET /\0 HTTP/1.1\r\n", 17), ControlByte},
      {"DEL in a value", get("Host: a\r\nX: b\x7f\r\n"), ControlByte},
      {"vertical tab", get("Host: a\r\nTransfer-Encoding: \vchunked\r\n"), ControlByte},
      {"TLS hello", std::string("\x16\x03\x01\x02\0\x01\0", 7), ControlByte},
      {"two equal lengths", post("Content-Length: 1\r\nContent-Length: 1\r\n"), ContentLength},
      {"two lengths", post("Content-Length: 1\r\nContent-Length: 2\r\n"), ContentLength},
      {"length list", post("Content-Length: 1, 1\r\n"), ContentLength},
      {"length with comma", post("Content-Length: 1,\r\n"), ContentLength},
      {"plus sign", post("Content-Length: +1\r\n"), ContentLength},
      {"minus sign", post("Content-Length: -1\r\n"), ContentLength},
      {"hexadecimal length", post("Content-Length: 0x1\r\n"), ContentLength},
      {"length with space", post("Content-Length: 1 1\r\n"), ContentLength},
      {"empty length", post("Content-Length:\r\n"), ContentLength},
      {"length of 65 bits", post("Content-Length: 18446744073709551616\r\n"), ContentLength},
      {"length and chunked", post("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
       TwoLengths},
      {"chunked and length", post("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"),
       TwoLengths},
      {"gzip and length", post("Transfer-Encoding: gzip\r\nContent-Length: 1\r\n"), TwoLengths},
      {"chunked twice", post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
       TransferEncoding},
      {"chunked twice in a list", post("Transfer-Encoding: chunked, chunked\r\n"),
       TransferEncoding},
      {"chunked not last", post("Transfer-Encoding: chunked, gzip\r\n"), TransferEncoding},
      {"no chunked", post("Transfer-Encoding: gzip\r\n"), TransferEncoding},
      {"identity", post("Transfer-Encoding: identity\r\n"), TransferEncoding},
      {"empty coding", post("Transfer-Encoding: \r\n"), TransferEncoding},
      {"quoted coding", post("Transfer-Encoding: \"chunked\"\r\n"), TransferEncoding},
      {"coding with parameter", post("Transfer-Encoding: chunked;a=b\r\n"), TransferEncoding},
      {"look-alike", post("Transfer-Encoding: xchunked\r\n"), TransferEncoding},
      {"chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", TransferEncoding},
      {"gzip below chunked", post("Transfer-Encoding: gzip, chunked\r\n"), UnknownCoding},
      {"gzip below chunked, two fields",
       post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n"), UnknownCoding},
      {"long request line", target("/" + std::string(2048, 'a')), RequestLineTooLong},
      {"endless request line", "GET /" + std::string(2048, 'a'), RequestLineTooLong},
      {"large head", get("Host: a\r\nX: " + std::string(2048, 'a') + "\r\n"), HeaderTooLarge},
      {"endless field", "GET / HTTP/1.1\r\nX: " + std::string(2048, 'a'), HeaderTooLarge},
      {"many fields",
       [] {
         std::string fields = "Host: a\r\n";
         for (int i = 0; i < 16; ++i) fields += "X: y\r\n";
         return get(fields);
       }(),
       TooManyFields},
      {"large body", post("Content-Length: 1000001\r\n"), BodyTooLarge},
  };
  return cases;
}

TEST(RequestParser, RefusesWithTheRightFault) {
  for (const BadCase& bad : bad_cases()) {
    const Parsed parsed = parse(bad.text);
    EXPECT_EQ(parsed.outcome, Outcome::Failed) << bad.name;
    EXPECT_EQ(word_of(parsed.fault), word_of(bad.fault)) << bad.name;
  }
}

TEST(RequestParser, RefusesInAnyPieces) {
  for (const BadCase& bad : bad_cases()) {
    std::vector<std::size_t> cuts;
    for (std::size_t i = 0; i < bad.text.size(); ++i) cuts.push_back(i);
    const Parsed parsed = parse(bad.text, cuts);
    EXPECT_EQ(parsed.outcome, Outcome::Failed) << bad.name;
    EXPECT_EQ(status_of(parsed.fault), status_of(bad.fault)) << bad.name;
  }
}

TEST(RequestParser, StatusOfEachFault) {
  using enum RequestFault;
  const std::vector<std::pair<RequestFault, int>> table{{RequestLine, 400},
                                                        {Version, 505},
                                                        {Method, 501},
                                                        {Target, 400},
                                                        {Host, 400},
                                                        {FieldLine, 400},
                                                        {FoldedField, 400},
                                                        {LineEnding, 400},
                                                        {ControlByte, 400},
                                                        {ContentLength, 400},
                                                        {TransferEncoding, 400},
                                                        {UnknownCoding, 501},
                                                        {TwoLengths, 400},
                                                        {Chunk, 400},
                                                        {RequestLineTooLong, 414},
                                                        {HeaderTooLarge, 431},
                                                        {TooManyFields, 431},
                                                        {BodyTooLarge, 413},
                                                        {HeaderTimeout, 408},
                                                        {BodyTimeout, 408}};
  EXPECT_EQ(table.size(), kRequestFaults);
  for (const auto& [fault, status] : table) EXPECT_EQ(status_of(fault), status) << word_of(fault);
}

TEST(RequestParser, ClosingResponsesAreFramed) {
  for (const int status : {400, 408, 413, 414, 431, 500, 501, 505}) {
    const std::string text(closing_response(status));
    EXPECT_TRUE(text.starts_with("HTTP/1.1 " + std::to_string(status) + ' ')) << text;
    EXPECT_NE(text.find("\r\nConnection: close\r\n"), std::string::npos);
    const auto body = text.find("\r\n\r\n") + 4;
    const auto length = text.find("Content-Length: ") + 16;
    EXPECT_EQ(std::stoul(text.substr(length)), text.size() - body) << text;
  }
}

TEST(RequestParser, SaysWhatARequestMeans) {
  struct Case {
    std::string text;
    std::string described;  // without fields and size
  };
  const std::vector<Case> cases{
      {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / a 11 - keep"},
      {"get /%C3%A4?b=|\" HTTP/1.1\r\nhost:   Ex.COM:8080  \r\n\r\n",
       "get /%C3%A4?b=|\" ex.com:8080 11 - keep"},
      {"GET / HTTP/1.1\r\nHost: [2001:DB8::1]:80\r\n\r\n", "GET / [2001:db8::1]:80 11 - keep"},
      {"GET / HTTP/1.1\r\nHost: a:\r\n\r\n", "GET / a 11 - keep"},
      {"GET http://Ex.com:81/a?b HTTP/1.1\r\nHost: other\r\n\r\n", "GET /a?b ex.com:81 11 - keep"},
      {"GET HTTPS://ex.com?q HTTP/1.1\r\nHost: ex.com\r\n\r\n", "GET /?q ex.com 11 - keep"},
      {"GET http://ex.com HTTP/1.1\r\nHost: ex.com\r\n\r\n", "GET / ex.com 11 - keep"},
      {"OPTIONS http://ex.com HTTP/1.1\r\nHost: ex.com\r\n\r\n", "OPTIONS * ex.com 11 - keep"},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * a 11 - keep"},
      {"GET / HTTP/1.0\r\n\r\n", "GET /  10 - close"},
      {"GET / HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", "GET / a 10 - keep"},
      {"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n", "GET / a 10 - close"},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: CLOSE\r\n\r\n", "GET / a 11 - close"},
      {"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade , close\r\n\r\n", "GET / a 11 - close"},
      {"GET / HTTP/1.1\r\nHost: a\r\nProxy-Connection: close\r\n\r\n", "GET / a 11 - keep"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n\r\n", "POST / a 11 7 keep"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n",
       "POST / a 11 0 keep"},
      {"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 5\r\n\r\n",
       "POST / a 11 5 keep expects"},
      {"POST / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
       "POST / a 10 5 close"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , Chunked\r\n\r\n",
       "POST / a 11 - chunked keep"},
      {"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET / a 11 - keep"},
      {"M-SEARCH /x HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Obs: \xe4\r\n\r\n",
       "M-SEARCH /x a 11 - keep"},
  };
  for (const Case& c : cases) {
    const Parsed whole = parse(c.text);
    ASSERT_EQ(whole.outcome, Outcome::Complete) << c.text << describe(whole);
    EXPECT_EQ(whole.head_bytes, c.text.size());
    EXPECT_TRUE(describe(whole).starts_with(c.described + " [")) << describe(whole);
    // Any two cuts and what follows the head change nothing.
    for (std::size_t i = 0; i <= c.text.size(); ++i) {
      EXPECT_EQ(describe(parse(c.text, {i})), describe(whole)) << "cut at " << i;
      EXPECT_EQ(describe(parse(c.text + "GARBAGE\n", {i, (i + c.text.size()) / 2})),
                describe(whole))
          << "cut at " << i;
    }
  }
}

TEST(RequestParser, KeepsFieldsAsReceivedAndInOrder) {
  const Parsed parsed = parse(get("Host: A\r\nx:1\r\nX: \t2 \t\r\nEmpty:\r\n"));
  ASSERT_EQ(parsed.outcome, Outcome::Complete);
  EXPECT_EQ(parsed.request.fields.text(), "Host: A\r\nx: 1\r\nX: 2\r\nEmpty: \r\n");
}

TEST(RequestParser, TakesHeadsUpToTheLimitAndNotOneByteMore) {
  const std::string start = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
  const std::string fit = start + std::string(2048 - start.size() - 4, 'x') + "\r\n\r\n";
  ASSERT_EQ(fit.size(), 2048u);
  EXPECT_EQ(parse(fit).outcome, Outcome::Complete);
  EXPECT_EQ(parse("\r\n" + fit).outcome, Outcome::Complete);
  EXPECT_EQ(parse(fit, {2047}).outcome, Outcome::Complete);
  const Parsed over = parse(start + "x" + fit.substr(start.size()));
  EXPECT_EQ(over.outcome, Outcome::Failed);
  EXPECT_EQ(over.fault, RequestFault::HeaderTooLarge);
}

TEST(RequestParser, TakesTheLastAllowedField) {
  std::string fields = "Host: a\r\n";
  for (int i = 0; i < 15; ++i) fields += "X: y\r\n";
  EXPECT_EQ(parse(get(fields)).outcome, Outcome::Complete);
}

TEST(RequestParser, StartsOverAfterReset) {
  RequestParser parser(kLimits);
  Request request;
  const std::string first =
      "POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
  ASSERT_EQ(parser.parse(first, request), Outcome::Complete);
  parser.reset();
  EXPECT_FALSE(parser.started());
  ASSERT_EQ(parser.parse("GET /2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", request),
            Outcome::Complete);
  EXPECT_EQ(request.target, "/2");
  EXPECT_EQ(request.host, "");
  EXPECT_EQ(request.fields.count(), 1u);
  EXPECT_FALSE(request.has_body());
  EXPECT_TRUE(request.keep_alive);
}

TEST(RequestParser, HasNotStartedWhileOnlyEmptyLinesCame) {
  RequestParser parser(kLimits);
  Request request;
  EXPECT_EQ(parser.parse("\r\n\r", request), Outcome::NeedMore);
  EXPECT_FALSE(parser.started());
  EXPECT_EQ(parser.parse("\r\n\r\nG", request), Outcome::NeedMore);
  EXPECT_TRUE(parser.started());
}

TEST(RequestParser, JudgesTheRequestLineBeforeTheHeadIsWhole) {
  EXPECT_EQ(describe(parse("PRI * HTTP/2.0\r\n")), "version");
  EXPECT_EQ(describe(parse("GET /#x HTTP/1.1\r\n")), "target");
  EXPECT_EQ(describe(parse("hello\r\n")), "request-line");
}

TEST(RequestParser, RandomBytesNeitherCrashNorDependOnCuts) {
  const char* given = std::getenv("SECONDSIGHT_SEED");
  const auto seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "SECONDSIGHT_SEED=" << seed << '\n';
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::vector<std::string> words{"GET ",
                                       "POST ",
                                       "/",
                                       "http://",
                                       "a.b",
                                       " HTTP/1.1",
                                       " HTTP/1.0",
                                       "\r\n",
                                       "\r\n\r\n",
                                       "\r",
                                       "\n",
                                       "Host: a\r\n",
                                       "Content-Length: ",
                                       "1",
                                       "Transfer-Encoding: chunked",
                                       ": ",
                                       " ",
                                       "\t",
                                       ",",
                                       "#",
                                       "*",
                                       std::string(1, '\0'),
                                       "\xff",
                                       "Connection: close\r\n",
                                       "Expect: 100-continue"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = below(2) == 0 ? "GET / HTTP/1.1\r\nHost: a\r\n" : "";
    for (std::size_t n = below(16); n > 0; --n)
      text += below(8) == 0 ? std::string(1, static_cast<char>(below(256)))
                            : words[below(words.size())];
    const Parsed whole = parse(text);
    const Parsed cut = parse(text, {below(text.size() + 1)});
    // Which of several faults is found first may depend on the pieces; whether there is one may
    // not.
    ASSERT_EQ(cut.outcome, whole.outcome) << ::testing::PrintToString(text);
    if (whole.outcome == Outcome::Complete) {
      ASSERT_EQ(describe(cut), describe(whole));
      ASSERT_FALSE(whole.request.chunked && whole.request.content_length);
    }
  }
}

TEST(Authority, Normalizes) {
  const std::vector<std::pair<std::string, std::string>> good{
      {"A", "a"},         {"a.B:80", "a.b:80"},   {"a:", "a"},
      {"[::1]", "[::1]"}, {"[::A]:1", "[::a]:1"}, {"1.2.3.4:65535", "1.2.3.4:65535"},
      {"a%41", "a%41"},   {"_x-y~", "_x-y~"}};
  for (const auto& [text, expected] : good) {
    std::string out = "old";
    EXPECT_TRUE(normalize_authority(text, out)) << text;
    EXPECT_EQ(out, expected);
  }
  for (const char* bad :
       {"", ":80", "a b", "a@b", "a/b", "a:65536", "a:123456", "a:-1", "a:8x", "[]", "[::1",
        "[::1]x", "[g::]", "a%4", "a%zz", "a[", "a:80:80", "\xe4"}) {
    std::string out;
    EXPECT_FALSE(normalize_authority(bad, out)) << bad;
  }
}

}  // namespace
}  // namespace secondsight::proxy
