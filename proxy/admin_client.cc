#include "proxy/admin_client.h"

#include <memory>

#include <curl/curl.h>

#include "config/address.h"

namespace secondsight::proxy {
namespace {

constexpr long kConnectTimeoutMs = 5'000;
constexpr std::size_t kAnswerBytesMax = 1U << 20;

std::size_t take(char* bytes, std::size_t, std::size_t count, void* to) {
  auto& body = *static_cast<std::string*>(to);
  if (body.size() + count > kAnswerBytesMax) return 0;
  body.append(bytes, count);
  return count;
}

}  // namespace

std::variant<ListenAddress, BadUsage> find_admin(const std::optional<std::string>& given,
                                                 const AdminSettings& settings) {
  if (given) {
    const auto address = parse_listen_address(*given);
    if (address && address->port != 0) return *address;
    return BadUsage{"--admin " + *given + " is no address such as 127.0.0.1:9180"};
  }
  if (!settings.enabled) return BadUsage{"[admin] listen = \"\": that proxy has no admin listener"};
  if (settings.listen.port != 0) return settings.listen;
  return BadUsage{"[admin] listen leaves the port to the kernel: say which with --admin"};
}

AdminAnswer post_to_admin(const ListenAddress& address, std::string_view path,
                          std::string_view content_type, const std::string& body,
                          std::chrono::seconds patience) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 curl_easy_cleanup);
  const std::string type = "Content-Type: " + std::string(content_type);
  const std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)> fields(
      curl_slist_append(nullptr, type.c_str()), curl_slist_free_all);
  AdminAnswer answer;
  if (!curl || !fields) {
    answer.failure = "out of memory";
    return answer;
  }
  const std::string url = "http://" + to_string(address) + std::string(path);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_NOPROXY, "*");
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT_MS, kConnectTimeoutMs);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, long{patience.count()});
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, fields.get());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.data());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    answer.failure = curl_easy_strerror(code);
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace secondsight::proxy
