#include "proxy/purge_request.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "cache/policy/fields.h"
#include "cache/tags.h"
#include "cache/target.h"
#include "config/quote.h"
#include "proxy/authority.h"
#include "proxy/json_members.h"

namespace secondsight::proxy {
namespace {

namespace json = boost::json;
using cache::Purge;
using cache::PurgeKind;
using cache::PurgeScope;

std::string_view view(const json::string& text) noexcept {
  return {text.data(), text.size()};
}

std::string_view type_name(const json::value& value) noexcept {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "true or false";
    case json::kind::string:
      return "a text";
    case json::kind::array:
      return "a list";
    case json::kind::object:
      return "an object";
    default:
      return "a number";
  }
}

/// What is before the path, and the path and query, of an http URL.
struct SplitUrl {
  std::string host;  // as in a Request, without the scheme's default port
  std::string target;
};

/// Empty text: it is one; else what is wrong, as the rest of a sentence.
std::string split(std::string_view url, SplitUrl& to) {
  const auto scheme_end = url.find("://");
  const std::string_view scheme = url.substr(0, std::min(scheme_end, url.size()));
  const bool is_https = cache::policy::equals_ignoring_case(scheme, "https");
  if (scheme_end == std::string_view::npos ||
      (!is_https && !cache::policy::equals_ignoring_case(scheme, "http")))
    return "is not an http URL, such as \"http://example.com/path\"";
  if (std::any_of(url.begin(), url.end(), [](char c) { return c <= 0x20 || c == 0x7f; }))
    return "holds bytes that no URL has; spell blanks as %20, and others likewise";
  const std::string_view rest = url.substr(scheme_end + 3);
  const auto host_end = std::min(rest.find_first_of("/?#"), rest.size());
  if (!normalize_authority(rest.substr(0, host_end), to.host)) return "has no usable host";
  if (is_https && to.host.ends_with(":443")) to.host.resize(to.host.size() - 4);
  to.target = rest.substr(host_end);
  if (to.target.find('#') != std::string::npos) return "has a fragment, which no request has";
  if (!to.target.starts_with('/')) to.target.insert(0, "/");
  return {};
}

Purge purge_of_prefix(const SplitUrl& url, PurgeKind kind) {
  Purge purge{PurgeScope::Prefix, kind, "http://"};
  cache::append_host("http", url.host, purge.text);
  cache::append_target(url.target, purge.text);
  return purge;
}

class Reader {
 public:
  Reader(const cache::Sites& sites, PurgeKind kind) : sites_(sites), kind_(kind) {}

  void member(std::string_view name, const json::value& value) {
    struct Member {
      std::string_view one, several;
      void (Reader::*add)(std::string_view name, std::string_view text);
    };
    constexpr std::array kMembers{Member{"url", "urls", &Reader::add_url},
                                  Member{"prefix", "prefixes", &Reader::add_prefix},
                                  Member{"tag", "tags", &Reader::add_tag}};
    for (const Member& known : kMembers) {
      if (name == known.one) return one(name, value, known.add);
      if (name == known.several) return several(name, value, known.add);
    }
    if (name == "everything") return everything(value);
    if (name == "soft") return;
    fault("unknown member " + quoted(name) +
          "; known are \"url\", \"urls\", \"prefix\", \"prefixes\", \"tag\", \"tags\", "
          "\"everything\" and \"soft\"");
  }
  void fault(std::string text) { faults_.push_back(std::move(text)); }

  std::variant<PurgeRequest, PurgeFaults> finish() {
    if (faults_.empty() && request_.purges.empty())
      fault("names nothing to purge: \"url\", \"prefix\", \"tag\" or \"everything\"");
    if (!faults_.empty()) return std::move(faults_);
    return std::move(request_);
  }

 private:
  using Add = void (Reader::*)(std::string_view name, std::string_view text);

  void one(std::string_view name, const json::value& value, Add add) {
    if (const auto* text = value.if_string()) return (this->*add)(name, view(*text));
    fault(quoted(name) + " must be a text, not " + std::string(type_name(value)));
  }
  void several(std::string_view name, const json::value& value, Add add) {
    const auto* list = value.if_array();
    if (list == nullptr)
      return fault(quoted(name) + " must be a list of texts, not " + std::string(type_name(value)));
    if (list->empty()) return fault(quoted(name) + " must not be empty");
    for (const json::value& item : *list) {
      if (const auto* text = item.if_string())
        (this->*add)(name, view(*text));
      else
        fault(quoted(name) + " must list texts only, not " + std::string(type_name(item)));
    }
  }
  void everything(const json::value& value) {
    const auto* wanted = value.if_bool();
    if (wanted == nullptr || !*wanted)
      return fault("\"everything\" can only be true; leave it out otherwise");
    request_.purges.push_back({PurgeScope::Everything, kind_, {}});
  }

  void add_url(std::string_view name, std::string_view text) {
    const auto url = checked_url(name, text);
    if (!url) return;
    auto purge = purge_of_url(url->host, url->target, kind_, sites_);
    if (!purge) return fault_too_long(name, text, cache::kPurgeTextBytesMax);
    request_.purges.push_back(std::move(*purge));
  }
  void add_prefix(std::string_view name, std::string_view text) {
    const auto url = checked_url(name, text);
    if (!url) return;
    Purge purge = purge_of_prefix(*url, kind_);
    if (purge.text.size() > cache::kPurgeTextBytesMax)
      return fault_too_long(name, text, cache::kPurgeTextBytesMax);
    request_.purges.push_back(std::move(purge));
  }
  void add_tag(std::string_view name, std::string_view text) {
    if (is_bad_text(name, text, cache::kTagBytesMax)) return;
    constexpr std::string_view kBlanks = " \t";
    if (kBlanks.find(text.front()) != std::string_view::npos ||
        kBlanks.find(text.back()) != std::string_view::npos)
      return fault(quoted(name) + " has blanks around " + quoted(text) + ", as no tag has");
    if (std::any_of(text.begin(), text.end(), [](char c) {
          return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
        }))
      return fault(quoted(name) + " has control characters in " + quoted(text));
    request_.purges.push_back({PurgeScope::Tag, kind_, std::string(text)});
  }

  std::optional<SplitUrl> checked_url(std::string_view name, std::string_view text) {
    if (is_bad_text(name, text, cache::kPurgeTextBytesMax)) return std::nullopt;
    SplitUrl url;
    if (const std::string reason = split(text, url); !reason.empty()) {
      fault(quoted(name) + ": " + quoted(text) + " " + reason);
      return std::nullopt;
    }
    return url;
  }
  bool is_bad_text(std::string_view name, std::string_view text, std::size_t bytes_max) {
    if (text.empty()) {
      fault(quoted(name) + " must not be empty");
      return true;
    }
    if (text.size() > bytes_max) {
      fault_too_long(name, text, bytes_max);
      return true;
    }
    return false;
  }
  void fault_too_long(std::string_view name, std::string_view text, std::size_t bytes_max) {
    fault(quoted(name) + " has more than " + std::to_string(bytes_max) +
          " bytes: " + quoted(text.substr(0, 40)) + "...");
  }

  const cache::Sites& sites_;
  const PurgeKind kind_;
  PurgeRequest request_;
  PurgeFaults faults_;
};

}  // namespace

std::optional<Purge> purge_of_url(std::string_view host, std::string_view target, PurgeKind kind,
                                  const cache::Sites& sites) {
  // Whatever fields and cookies add stands behind the first line.
  const std::string text = sites.primary_key(host, target, {}).text();
  Purge purge{PurgeScope::Url, kind, text.substr(0, text.find('\n'))};
  if (purge.text.size() > cache::kPurgeTextBytesMax) return std::nullopt;
  return purge;
}

std::variant<PurgeRequest, PurgeFaults> read_purge_request(std::string_view text,
                                                           const cache::Sites& sites) {
  boost::system::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  if (error) return PurgeFaults{"not JSON: " + error.message()};
  const auto* object = value.if_object();
  if (object == nullptr)
    return PurgeFaults{"must be an object, such as {\"tag\": \"x\"}, not " +
                       std::string(type_name(value))};
  const auto* soft = object->if_contains("soft");
  const bool is_soft = soft != nullptr && soft->is_bool() && soft->get_bool();
  Reader reader(sites, is_soft ? PurgeKind::Soft : PurgeKind::Hard);
  if (soft != nullptr && !soft->is_bool())
    reader.fault("\"soft\" must be true or false, not " + std::string(type_name(*soft)));
  for (const std::string& name : repeated_members(text))
    reader.fault(quoted(std::string_view(name)) +
                 " stands there more than once; \"urls\", \"prefixes\" and \"tags\" list several");
  for (const auto& [name, member] : *object) reader.member({name.data(), name.size()}, member);
  return reader.finish();
}

}  // namespace secondsight::proxy
