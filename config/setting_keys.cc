#include "config/setting_keys.h"

#include <array>

#include "config/quote.h"
#include "config/setting_reader.h"
#include "config/site_words.h"

namespace secondsight {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

using Reader = SettingReader;

// Limits without a comment only keep typing errors out: far above any use, far below overflow.
constexpr WholeRange kConnections{1, 1'000'000};
constexpr WholeRange kThreads{1, 256};
// Two is "second-sighting" by another name; each one more is another filter.
constexpr WholeRange kSightings{2, 8};
constexpr DurationRange kTimeout{};
constexpr DurationRange kDrain{seconds{0}, hours{24}};
constexpr DurationRange kKeepalive{seconds{1}, hours{24}};  // libcurl counts it in seconds
constexpr DurationRange kWindow{seconds{1}, hours{24 * 366}};
constexpr DurationRange kStale{seconds{0}, hours{24 * 366}};
constexpr BytesRange kHeader{1_KiB, {}};
constexpr BytesRange kBuffer{16_KiB, {}};  // one read from the origin
// Four segments: one being written, one sealed, one being reclaimed, one to spare.
constexpr BytesRange kDisk{4 * 256_KiB, "memory only"};
constexpr BytesRange kScrub{64_KiB, "not at all"};  // a second
constexpr BytesRange kMemory{1_MiB, "no memory tier"};

constexpr std::array kKeys{
    SettingKey{"proxy", "listen", [](Reader& r, Settings& s) { r.listen(s.proxy.listen); }},
    SettingKey{"proxy", "workers",
               [](Reader& r, Settings& s) {
                 r.whole_number(s.proxy.workers, {0, 256});
               }},
    SettingKey{
        "proxy", "max_connections",
        [](Reader& r, Settings& s) { r.whole_number(s.proxy.max_connections, kConnections); }},
    SettingKey{"proxy", "max_header",
               [](Reader& r, Settings& s) { r.bytes(s.proxy.max_header_bytes, kHeader); }},
    SettingKey{"proxy", "max_header_fields",
               [](Reader& r, Settings& s) {
                 r.whole_number(s.proxy.max_header_fields, {1, 10'000});
               }},
    SettingKey{"proxy", "max_request_body",
               [](Reader& r, Settings& s) {
                 r.bytes(s.proxy.max_request_body, {1, "no bodies"});
               }},
    SettingKey{"proxy", "header_timeout",
               [](Reader& r, Settings& s) { r.duration(s.proxy.header_timeout, kTimeout); }},
    SettingKey{"proxy", "idle_timeout",
               [](Reader& r, Settings& s) { r.duration(s.proxy.idle_timeout, kTimeout); }},
    SettingKey{"proxy", "body_timeout",
               [](Reader& r, Settings& s) { r.duration(s.proxy.body_timeout, kTimeout); }},
    SettingKey{"proxy", "drain_timeout",
               [](Reader& r, Settings& s) { r.duration(s.proxy.drain_timeout, kDrain); }},

    SettingKey{"origin", "url", [](Reader& r, Settings& s) { r.origin_urls(s.origin.urls); }},
    SettingKey{
        "origin", "max_connections",
        [](Reader& r, Settings& s) { r.whole_number(s.origin.max_connections, kConnections); }},
    SettingKey{"origin", "connect_timeout",
               [](Reader& r, Settings& s) { r.duration(s.origin.connect_timeout, kTimeout); }},
    SettingKey{"origin", "response_timeout",
               [](Reader& r, Settings& s) { r.duration(s.origin.response_timeout, kTimeout); }},
    SettingKey{"origin", "idle_timeout",
               [](Reader& r, Settings& s) { r.duration(s.origin.idle_timeout, kTimeout); }},
    SettingKey{"origin", "keepalive",
               [](Reader& r, Settings& s) { r.duration(s.origin.keepalive, kKeepalive); }},
    SettingKey{"origin", "max_header",
               [](Reader& r, Settings& s) { r.bytes(s.origin.max_header_bytes, kHeader); }},
    SettingKey{"origin", "flight_buffer",
               [](Reader& r, Settings& s) { r.bytes(s.origin.flight_buffer, kBuffer); }},

    SettingKey{"cache", "directory", [](Reader& r, Settings& s) { r.path(s.cache.directory); }},
    SettingKey{"cache", "disk", [](Reader& r, Settings& s) { r.bytes(s.cache.disk_bytes, kDisk); }},
    SettingKey{"cache", "memory",
               [](Reader& r, Settings& s) { r.bytes(s.cache.memory_bytes, kMemory); }},
    SettingKey{"cache", "max_object",
               [](Reader& r, Settings& s) {
                 r.bytes(s.cache.max_object, {1, {}});
               }},
    SettingKey{"cache", "write_queue",
               [](Reader& r, Settings& s) { r.bytes(s.cache.write_queue, kBuffer); }},
    SettingKey{"cache", "disk_threads",
               [](Reader& r, Settings& s) { r.whole_number(s.cache.disk_threads, kThreads); }},
    SettingKey{"cache", "scrub",
               [](Reader& r, Settings& s) { r.bytes(s.cache.scrub_bytes, kScrub); }},
    SettingKey{"cache", "stale_if_error",
               [](Reader& r, Settings& s) { r.duration(s.cache.stale_if_error, kStale); }},

    SettingKey{"admission", "policy", [](Reader& r, Settings& s) { r.policy(s.admission.policy); }},
    SettingKey{"admission", "expected_keys",
               [](Reader& r, Settings& s) {
                 r.whole_number(s.admission.expected_keys, {1, 100'000'000'000});
               }},
    // Above one half a filter refuses less than it lets through.
    SettingKey{"admission", "false_positive_rate",
               [](Reader& r, Settings& s) { r.rate(s.admission.false_positive_rate, 0.25); }},
    SettingKey{"admission", "window",
               [](Reader& r, Settings& s) { r.duration(s.admission.window, kWindow); }},
    SettingKey{"admission", "probability",
               [](Reader& r, Settings& s) { r.rate(s.admission.probability, 1); }},
    SettingKey{"admission", "size_scale",
               [](Reader& r, Settings& s) {
                 r.bytes(s.admission.size_scale_bytes, {1, {}});
               }},
    SettingKey{"admission", "sightings",
               [](Reader& r, Settings& s) { r.whole_number(s.admission.sightings, kSightings); }},

    SettingKey{"admin", "listen", [](Reader& r, Settings& s) { r.admin_listen(s.admin); }},

    SettingKey{"purge", "allow", [](Reader& r, Settings& s) { r.address_ranges(s.purge.allow); }},

    SettingKey{"log", "level", [](Reader& r, Settings& s) { r.log_level(s.log.level); }},
    SettingKey{"log", "access",
               [](Reader& r, Settings& s) { r.path(s.log.access, "no access log"); }},

    SettingKey{kSiteTable, "host",
               [](Reader& r, Settings& s) { r.words(s.sites.back().hosts, kSiteHost); }},
    SettingKey{kSiteTable, "sort_query",
               [](Reader& r, Settings& s) { r.boolean(s.sites.back().sort_query); }},
    SettingKey{kSiteTable, "keep_params",
               [](Reader& r, Settings& s) { r.words(s.sites.back().keep_params, kParamName); }},
    SettingKey{kSiteTable, "drop_params",
               [](Reader& r, Settings& s) { r.words(s.sites.back().drop_params, kParamName); }},
    SettingKey{kSiteTable, "drop_empty_query",
               [](Reader& r, Settings& s) { r.boolean(s.sites.back().drop_empty_query); }},
    SettingKey{kSiteTable, "key_headers",
               [](Reader& r, Settings& s) { r.words(s.sites.back().key_headers, kKeyHeader); }},
    SettingKey{kSiteTable, "key_cookies",
               [](Reader& r, Settings& s) { r.words(s.sites.back().key_cookies, kKeyCookie); }},
    SettingKey{kSiteTable, "remove_dot_segments",
               [](Reader& r, Settings& s) { r.boolean(s.sites.back().remove_dot_segments); }},
    SettingKey{kSiteTable, "stale_if_error",
               [](Reader& r, Settings& s) {
                 s.sites.back().stale_if_error.emplace();
                 r.duration(*s.sites.back().stale_if_error, kStale);
               }},
};

constexpr std::array kPolicyKeys{PolicyKey{"probability", PolicyName::Probability},
                                 PolicyKey{"size_scale", PolicyName::SizeProbability},
                                 PolicyKey{"sightings", PolicyName::NthSighting}};

}  // namespace

std::string heading(std::string_view table) {
  std::string text = "[";
  append_escaped(text, table);
  text += ']';
  return table == kSiteTable ? "[" + text + "]" : text;
}

std::span<const SettingKey> setting_keys() noexcept {
  return kKeys;
}

std::span<const PolicyKey> policy_keys() noexcept {
  return kPolicyKeys;
}

}  // namespace secondsight
