#include "cache/head_text.h"

#include <string_view>
#include <utility>

#include "cache/policy/read_facts.h"

namespace secondsight::cache {

std::string head_text(const ObjectHead& head) {
  std::string text;
  text.reserve(head.reason.size() + 2 + head.fields.text().size());
  text.append(head.reason).append("\r\n").append(head.fields.text());
  return text;
}

std::shared_ptr<const ObjectHead> read_head(const log::RecordHead& record) {
  const std::string_view text = record.head;
  const auto reason_end = text.find("\r\n");
  if (reason_end == std::string_view::npos) return nullptr;
  auto fields = policy::FieldBlock::from_text(text.substr(reason_end + 2));
  if (!fields) return nullptr;
  auto head = std::make_shared<ObjectHead>();
  head->status = record.status;
  head->reason = text.substr(0, reason_end);
  head->fields = std::move(*fields);
  head->facts = policy::read_facts(head->status, head->fields, record.times.response_received);
  head->times = record.times;
  return head;
}

}  // namespace secondsight::cache
