#pragma once
#include <memory>
#include <string>

#include "cache/log/record.h"
#include "cache/object.h"

namespace secondsight::cache {

/// The head as a record keeps it: the reason phrase, CRLF, then the field lines.
std::string head_text(const ObjectHead& head);

/// The other way. Null when the text is damaged.
std::shared_ptr<const ObjectHead> read_head(const log::RecordHead& record);

}  // namespace secondsight::cache
