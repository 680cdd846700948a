#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/address_range.h"
#include "config/units.h"

namespace secondsight {

/// A numeric address and port to listen on; port 0 asks the kernel for one.
struct ListenAddress {
  std::string host;  // "127.0.0.1", "::1", "0.0.0.0": in its shortest form, without brackets
  std::uint16_t port = 0;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

/// What decides which objects are written to disk (admission/admission_policy.h).
enum class PolicyName : std::uint8_t {
  SecondSighting,
  Always,
  Never,
  Probability,
  SizeProbability,
  NthSighting,
  ClassicBloom,
  ScalableBloom,
  Cuckoo,
  Exact,
};
inline constexpr std::array kPolicyNames{PolicyName::SecondSighting,  PolicyName::Always,
                                         PolicyName::Never,           PolicyName::Probability,
                                         PolicyName::SizeProbability, PolicyName::NthSighting,
                                         PolicyName::ClassicBloom,    PolicyName::ScalableBloom,
                                         PolicyName::Cuckoo,          PolicyName::Exact};
std::string_view to_string(PolicyName) noexcept;
/// Whether the policy remembers sightings: whether expected_keys, false_positive_rate and window
/// mean anything to it.
bool remembers_sightings(PolicyName) noexcept;

/// [proxy]: the side that faces clients.
struct ProxySettings {
  std::vector<ListenAddress> listen{{"127.0.0.1", 8080}};
  unsigned workers = 0;                     // 0: one per core
  unsigned max_connections = 10'000;        // per worker; more are closed at once and counted
  std::uint64_t max_header_bytes = 32_KiB;  // request line and fields; more: 431 and close
  unsigned max_header_fields = 128;         // more: 431 and close
  std::uint64_t max_request_body = 1_GiB;   // more: 413 and close
  std::chrono::milliseconds header_timeout{
      10'000};                                      // from a request's first byte to its last field
  std::chrono::milliseconds idle_timeout{60'000};   // between two requests
  std::chrono::milliseconds body_timeout{30'000};   // without progress, either direction
  std::chrono::milliseconds drain_timeout{10'000};  // after SIGTERM, for exchanges under way
  friend bool operator==(const ProxySettings&, const ProxySettings&) = default;
};

/// One origin server, as http://host[:port] or https://host[:port].
struct OriginUrl {
  bool tls = false;
  std::string host;  // name or address, in lower case; brackets removed
  std::uint16_t port = 80;
  std::string text;  // as configured, without a trailing slash
  friend bool operator==(const OriginUrl&, const OriginUrl&) = default;
};

/// [origin]: where misses go.
struct OriginSettings {
  std::vector<OriginUrl> urls;  // at least one; used in turn, the next when one cannot be reached
  unsigned max_connections = 256;                      // per worker; more requests wait their turn
  std::chrono::milliseconds connect_timeout{3'000};    // 504 after it
  std::chrono::milliseconds response_timeout{30'000};  // until the response head: 504 after it
  std::chrono::milliseconds idle_timeout{30'000};      // between two pieces of a body
  std::chrono::milliseconds keepalive{4'000};          // an idle pooled connection's life
  std::uint64_t max_header_bytes = 64_KiB;             // a larger response head: 502
  std::uint64_t flight_buffer = 256_KiB;               // body bytes held for a slow reader
  friend bool operator==(const OriginSettings&, const OriginSettings&) = default;
};

/// [cache]: what is kept, and where.
struct CacheSettings {
  std::string directory = "/var/cache/secondsight";
  std::uint64_t disk_bytes = 10_GiB;     // 0: memory only
  std::uint64_t memory_bytes = 256_MiB;  // 0: no memory tier
  std::uint64_t max_object = 1_GiB;      // larger bodies are passed on, never kept
  std::uint64_t write_queue = 16_MiB;    // admitted bytes that wait for the disk; full: refused
  unsigned disk_threads = 4;             // blocking reads
  // Past its freshness, a response answers for a failing origin this long, though nobody said so.
  // 0: only what the response or the request allows.
  std::chrono::milliseconds stale_if_error{std::chrono::hours{1}};
  std::uint64_t scrub_bytes = 0;  // a second, read to check what is on disk; 0: it is not
  friend bool operator==(const CacheSettings&, const CacheSettings&) = default;
};

/// [admission]: what may be written to disk.
struct AdmissionSettings {
  PolicyName policy = PolicyName::SecondSighting;
  std::uint64_t expected_keys = 1'000'000;  // distinct keys per generation
  double false_positive_rate = 0.01;        // both generations together, averaged over the window
  std::chrono::milliseconds window{std::chrono::hours{24}};  // a generation's longest life
  double probability = 0.1;                 // Probability: the chance of each sighting
  std::uint64_t size_scale_bytes = 64_KiB;  // SizeProbability: exp(-body / size_scale)
  unsigned sightings = 3;                   // NthSighting: so many within the window
  friend bool operator==(const AdmissionSettings&, const AdmissionSettings&) = default;
};

/// [admin]: metrics and status.
struct AdminSettings {
  bool enabled = true;  // listen = "" turns it off
  ListenAddress listen{"127.0.0.1", 9180};
  friend bool operator==(const AdminSettings&, const AdminSettings&) = default;
};

/// [purge]: who may send PURGE where clients are listened to.
struct PurgeSettings {
  std::vector<AddressRange> allow;  // none: PURGE is passed on as any unknown method
  friend bool operator==(const PurgeSettings&, const PurgeSettings&) = default;
};

/// [log]
struct LogSettings {
  std::string level = "info";  // debug, info, warning, error
  std::string access;          // a file, "-" for stdout, empty for none: one JSON line per request
  friend bool operator==(const LogSettings&, const LogSettings&) = default;
};

/// One [[site]]: what makes a cache key for its hosts, and what else is theirs alone.
struct SiteSettings {
  /// "example.com", "*.example.com" (names below it, not itself), "[::1]", "*" (all others). Lower
  /// case, without port: rules hold for every port.
  std::vector<std::string> hosts;
  bool sort_query = false;
  std::vector<std::string> keep_params;  // at most one of these two has any;
  std::vector<std::string> drop_params;  // a "*" at the end stands for any rest
  bool drop_empty_query = false;
  std::vector<std::string> key_headers;  // lower case
  std::vector<std::string> key_cookies;
  bool remove_dot_segments = false;
  std::optional<std::chrono::milliseconds> stale_if_error;  // empty: that of [cache]
  friend bool operator==(const SiteSettings&, const SiteSettings&) = default;
};

/// The whole configuration: read once, never changed, shared by reference.
struct Settings {
  ProxySettings proxy;
  OriginSettings origin;
  CacheSettings cache;
  AdmissionSettings admission;
  AdminSettings admin;
  PurgeSettings purge;
  LogSettings log;
  std::vector<SiteSettings> sites;
  friend bool operator==(const Settings&, const Settings&) = default;
};

/// One mistake in a configuration, with what would be right.
struct Fault {
  std::string file;
  unsigned line = 0;  // from 1; 0 when the fault has no line (a missing file or key)
  unsigned column = 0;
  std::string message;
};
/// "FILE:LINE:COLUMN: message", or "FILE: message" where there is no line.
std::string to_string(const Fault&);

/// Settings, or every fault at once, in the order of their lines. A text that is not TOML is one
/// fault: what follows it cannot be judged. Never throws on bad input.
std::variant<Settings, std::vector<Fault>> parse_settings(std::string_view toml_text,
                                                          std::string_view file_name);
/// Same for a file of at most 1 MiB; one that cannot be read is a fault.
std::variant<Settings, std::vector<Fault>> load_settings(const std::string& path);

/// The fault of a good value that a layer above this one cannot use, at the place of that key (such
/// as "admission.expected_keys") in the file; without a line where the file does not name the key.
Fault fault_at(const std::string& path, std::string_view key, std::string message);

}  // namespace secondsight
