#pragma once
#include "cache/policy/facts.h"
#include "cache/policy/fields.h"

namespace secondsight::cache::policy {

/// Does the client already have this stored response, so that 304 answers it? If-None-Match by weak
/// comparison, lists and "*"; If-Modified-Since only without it, against Last-Modified, else Date,
/// else the time of receipt. For GET and HEAD. RFC 9110 13.1.2, 13.1.3, 13.2.2; RFC 9111 4.3.2.
bool is_not_modified(const FieldBlock& request, const ResponseFacts& stored,
                     const ExchangeTimes& times);

/// The request's fields with its own conditions (and Range, so that the answer is the whole)
/// replaced by the stored response's validators. RFC 9111 4.3.1. Nothing is added when the stored
/// response has no validator.
FieldBlock with_validators(const FieldBlock& request, const ResponseFacts& stored,
                           const FieldBlock& stored_fields);

/// The stored fields after a 304 freshened them: each field in the 304 replaces all of that name,
/// except Content-Encoding and Content-Range (they describe the stored bytes), Content-Length, Age
/// and connection fields. RFC 9111 3.2, 4.3.4.
FieldBlock freshened(const FieldBlock& stored, const FieldBlock& not_modified);

/// Whether a 304 may freshen this stored response: not with a strong entity tag that is another
/// one. RFC 9111 4.3.4.
bool may_freshen(const ResponseFacts& stored, const ResponseFacts& not_modified) noexcept;

/// What a 200 to HEAD says of a stored 200 to GET that the same request would select. RFC
/// 9111 4.3.5.
enum class HeadVerdict : std::uint8_t {
  Same,      // every validator it brings is the stored one's, and so is its length: freshen it
  Outdated,  // the stored response is not to be used any more
};
HeadVerdict judge_by_head(const ResponseFacts& stored, std::uint64_t stored_bytes,
                          const ResponseFacts& head,
                          std::optional<std::uint64_t> head_content_length);

/// The fields a 304 to the client carries: those of a 200 that RFC 9110 15.4.5 names, plus
/// Last-Modified when there is no ETag.
FieldBlock not_modified_fields(const FieldBlock& stored);

/// Whether two entity tags are equal and both strong. RFC 9110 8.8.3.2.
bool matches_strongly(std::string_view a, std::string_view b) noexcept;
/// Whether two entity tags are equal but for W/.
bool matches_weakly(std::string_view a, std::string_view b) noexcept;

}  // namespace secondsight::cache::policy
