#pragma once
#include <iosfwd>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proxy/admin_client.h"

namespace secondsight::proxy {

/// The request head that `url` ("http://host/path", or a path where the fields name a Host) and
/// `fields` ("Name: value") stand for. Only what the proxy itself would take.
std::variant<std::string, BadUsage> make_request_head(std::string_view method, std::string_view url,
                                                      const std::vector<std::string>& fields);

/// secondsight explain URL [-H 'Name: value' ...] [-X METHOD] [--admin ADDRESS] [--config FILE]
/// [--json]: asks the running proxy what would become of that request. `arguments[0]` is "explain".
/// The exit code: 0; 1: the proxy cannot be asked; 2: bad usage.
int run_explain(int count, const char* const* arguments, std::ostream& out, std::ostream& error);

}  // namespace secondsight::proxy
