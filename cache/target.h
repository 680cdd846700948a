#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace secondsight::cache {

// How the parts of a URL are spelled in a key. All append to `out`.

/// The host in lower case without its scheme's default port. No byte of it reads as the target's.
/// RFC 3986 6.2.2.1, RFC 9110 4.2.3.
void append_host(std::string_view scheme, std::string_view host, std::string& out);

/// Text with the escapes that RFC 3986 6.2.2 calls equal in one spelling: hex digits in upper case,
/// unreserved bytes decoded. A text with a broken escape is not touched (whatever we made of it
/// could be another's): false.
bool append_normalised(std::string_view text, std::string& out);

/// A whole target, normalised or not touched as a whole; an empty path is "/".
void append_target(std::string_view target, std::string& out);

/// A path, normalised, its dot segments removed: RFC 3986 5.2.4, 6.2.2.3. "%2e" is a dot; an empty
/// path is "/". One with a broken escape, or not absolute, is appended as it is.
void append_path_without_dots(std::string_view path, std::string& out);

/// The target to ask an origin for when the key's path has no dot segments: `target` itself if it
/// had none either, else with the key's path and its own query. Its key is that of `target`.
std::string target_without_dots(std::string_view target);

}  // namespace secondsight::cache
