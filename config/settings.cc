#include "config/settings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <map>
#include <unistd.h>
#include <utility>

#include <toml++/toml.h>

#include "config/address.h"
#include "config/quote.h"
#include "config/result.h"
#include "config/setting_keys.h"
#include "config/setting_reader.h"
#include "config/suggestion.h"

namespace secondsight {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1_MiB;  // a configuration is a page or two
// toml++ frees nested tables recursively, and a.b.c = 1 nests one for each dot: some 32,000 of them
// exhaust a stack of 8 MiB. Its own limit of 256 covers brackets only.
constexpr std::ptrdiff_t kMaxDots = 20'000;

std::vector<std::string_view> table_names() {
  std::vector<std::string_view> names;
  for (const SettingKey& key : setting_keys()) {
    if (names.empty() || names.back() != key.table) names.push_back(key.table);
  }
  return names;
}

std::vector<std::string_view> key_names(std::string_view table) {
  std::vector<std::string_view> names;
  for (const SettingKey& key : setting_keys()) {
    if (key.table == table) names.push_back(key.name);
  }
  return names;
}

const SettingKey* find_key(std::string_view table, std::string_view name) {
  for (const SettingKey& key : setting_keys()) {
    if (key.table == table && key.name == name) return &key;
  }
  return nullptr;
}

/// The only table that knows `name`; empty when none or several do.
std::string_view table_of_key(std::string_view name) {
  std::string_view table;
  for (const SettingKey& key : setting_keys()) {
    if (key.name != name) continue;
    if (!table.empty()) return {};
    table = key.table;
  }
  return table;
}

std::string unknown_key_message(std::string_view table, std::string_view name) {
  std::string message = "unknown key " + quoted(name) + " in " + heading(table);
  if (const std::string_view home = table_of_key(name); !home.empty()) {
    return message + "; it belongs to " + heading(home);
  }
  if (const std::string_view nearest = nearest_word(name, key_names(table)); !nearest.empty()) {
    message += "; did you mean " + quoted(nearest) + "?";
  }
  return message;
}

std::string unknown_table_message(std::string_view name, const toml::node& value) {
  std::string message;
  if (value.is_table()) {
    message = "unknown table " + heading(name);
  } else if (value.is_array_of_tables()) {
    message = "unknown table [" + heading(name) + "]";
  } else {
    message = "unknown key " + quoted(name) + " before any table";
    if (const std::string_view home = table_of_key(name); !home.empty()) {
      return message + "; it belongs to " + heading(home);
    }
  }
  if (const std::string_view nearest = nearest_word(name, table_names()); !nearest.empty()) {
    message += "; did you mean " + heading(nearest) + "?";
  }
  return message;
}

void read_table(std::string_view name, const toml::table& table, Settings& settings,
                FaultList& faults) {
  for (const auto& [key, value] : table) {
    if (const SettingKey* known = find_key(name, key.str())) {
      SettingReader reader{known->table, known->name, value, faults};
      known->read(reader, settings);
    } else {
      faults.add(key.source().begin, unknown_key_message(name, key.str()));
    }
  }
}

/// What only a site's keys together can tell.
void check_site(const toml::table& table, FaultList& faults) {
  if (!table.contains("host")) {
    faults.add(table.source().begin,
               "[[site]] host is missing: set it to the name that requests give, such as "
               "\"example.com\", or to \"*\" for all others");
  }
  const toml::node* const keep = table.get("keep_params");
  const toml::node* const drop = table.get("drop_params");
  if (keep != nullptr && drop != nullptr) {
    const bool drop_is_last = drop->source().begin > keep->source().begin;
    faults.add((drop_is_last ? drop : keep)->source().begin,
               "[[site]] keep_params and drop_params exclude each other: the one names all that "
               "is in the key, the other all that is not; leave one of them out");
  }
}

/// Two sites with one host would leave it open whose rules hold. Within one, `words` has looked.
void check_hosts(const toml::array& sites, FaultList& faults) {
  std::map<std::string_view, const toml::node*> owners;
  for (const toml::node& site : sites) {
    const toml::node* const host = site.is_table() ? site.as_table()->get("host") : nullptr;
    const auto look_at = [&](const toml::node& item) {
      const auto* text = item.as_string();
      if (text == nullptr) return;
      const auto [first, is_new] = owners.try_emplace(text->get(), &site);
      if (is_new || first->second == &site) return;
      faults.add(item.source().begin, "[[site]] host " + quoted(text->get()) +
                                          " belongs to the site on line " +
                                          std::to_string(first->second->source().begin.line) +
                                          " already; leave it out in one of them");
    };
    if (host == nullptr) continue;
    if (const auto* list = host->as_array()) {
      for (const toml::node& item : *list) look_at(item);
    } else {
      look_at(*host);
    }
  }
}

void read_sites(const toml::key& key, const toml::node& value, Settings& settings,
                FaultList& faults) {
  if (!value.is_array_of_tables()) {
    faults.add(key.source().begin,
               "site must be a list of tables; write the keys of each below a [[site]] line");
    return;
  }
  for (const toml::node& site : *value.as_array()) {
    settings.sites.emplace_back();
    read_table(kSiteTable, *site.as_table(), settings, faults);
    check_site(*site.as_table(), faults);
  }
  check_hosts(*value.as_array(), faults);
}

void read_tables(const toml::table& root, Settings& settings, FaultList& faults) {
  const auto known = table_names();
  for (const auto& [key, value] : root) {
    if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
      faults.add(key.source().begin, unknown_table_message(key.str(), value));
    } else if (key.str() == kSiteTable) {
      read_sites(key, value, settings, faults);
    } else if (const toml::table* table = value.as_table()) {
      read_table(key.str(), *table, settings, faults);
    } else {
      const std::string name{key.str()};
      faults.add(key.source().begin,
                 name + " must be a table; write its keys below one [" + name + "] line");
    }
  }
}

/// A key that only one policy reads would do nothing beside another.
void check_policy_keys(const toml::table& root, const Settings& settings, FaultList& faults) {
  const toml::node* const node = root.get("admission");
  const toml::table* const admission = node == nullptr ? nullptr : node->as_table();
  if (admission == nullptr) return;
  const std::string_view chosen = to_string(settings.admission.policy);
  const toml::node* const policy = admission->get("policy");
  // A policy that could not be read has a fault of its own.
  if (policy != nullptr && policy->value<std::string_view>() != chosen) return;
  for (const PolicyKey& key : policy_keys()) {
    const toml::node* const value = admission->get(key.name);
    if (value == nullptr || key.policy == settings.admission.policy) continue;
    faults.add(value->source().begin, "[admission] " + std::string{key.name} +
                                          " is used by policy " + quoted(to_string(key.policy)) +
                                          " only, and the policy is " + quoted(chosen) +
                                          "; leave one of them out");
  }
}

/// What no single key can tell.
void check_together(const toml::table& root, const Settings& settings, FaultList& faults) {
  const toml::node* const origin = root.get("origin");
  if (origin == nullptr || (origin->is_table() && !origin->as_table()->contains("url"))) {
    faults.add(origin == nullptr ? toml::source_position{} : origin->source().begin,
               "[origin] url is missing: set it to the origin's address, such as "
               "\"http://127.0.0.1:9000\"");
  }
  check_policy_keys(root, settings, faults);
  const auto& listens = settings.proxy.listen;
  const ListenAddress& admin = settings.admin.listen;
  if (settings.admin.enabled && admin.port != 0 &&
      std::find(listens.begin(), listens.end(), admin) != listens.end()) {
    const toml::node* where = root.at_path("admin.listen").node();
    if (where == nullptr) where = root.at_path("proxy.listen").node();
    faults.add(where == nullptr ? toml::source_position{} : where->source().begin,
               "[admin] listen is " + to_string(admin) +
                   ", as is [proxy] listen; give one of them another port");
  }
}

Result<std::string> read_file(const std::string& path) {
  const auto last_error = [] {
    return boost::system::error_code{errno, boost::system::generic_category()};
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return last_error();
  Result<std::string> text{std::string{}};
  std::array<char, 16_KiB> block{};
  while (text->size() <= kMaxFileBytes) {
    const ssize_t count = ::read(file, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) text = last_error();
    if (count <= 0) break;
    text->append(block.data(), static_cast<std::size_t>(count));
  }
  ::close(file);
  return text;
}

}  // namespace

std::string_view to_string(PolicyName policy) noexcept {
  switch (policy) {
    case PolicyName::SecondSighting:
      return "second-sighting";
    case PolicyName::Always:
      return "always";
    case PolicyName::Never:
      return "never";
    case PolicyName::Probability:
      return "probability";
    case PolicyName::SizeProbability:
      return "size-probability";
    case PolicyName::NthSighting:
      return "nth-sighting";
    case PolicyName::ClassicBloom:
      return "classic-bloom";
    case PolicyName::ScalableBloom:
      return "scalable-bloom";
    case PolicyName::Cuckoo:
      return "cuckoo";
    case PolicyName::Exact:
      return "exact";
  }
  return "";
}

bool remembers_sightings(PolicyName policy) noexcept {
  return policy != PolicyName::Always && policy != PolicyName::Never &&
         policy != PolicyName::Probability && policy != PolicyName::SizeProbability;
}

std::string to_string(const Fault& fault) {
  std::string text = fault.file;
  if (fault.line != 0) {
    text += ':' + std::to_string(fault.line) + ':' + std::to_string(fault.column);
  }
  return text + ": " + fault.message;
}

std::variant<Settings, std::vector<Fault>> parse_settings(std::string_view toml_text,
                                                          std::string_view file_name) {
  FaultList faults{file_name};
  Settings settings;
  if (toml_text.size() > kMaxFileBytes) {
    faults.add({}, "is larger than " + format_bytes(kMaxFileBytes));
    return faults.take_sorted();
  }
  if (std::count(toml_text.begin(), toml_text.end(), '.') > kMaxDots) {
    faults.add({}, "holds more than " + std::to_string(kMaxDots) + " dots, too many to nest");
    return faults.take_sorted();
  }
  try {
    const toml::table root = toml::parse(toml_text);
    read_tables(root, settings, faults);
    check_together(root, settings, faults);
  } catch (const toml::parse_error& error) {
    std::string message;
    append_escaped(message, error.description());
    faults.add(error.source().begin, message);
  }
  if (!faults.empty()) return faults.take_sorted();
  return settings;
}

std::variant<Settings, std::vector<Fault>> load_settings(const std::string& path) {
  const Result<std::string> text = read_file(path);
  if (!text) return std::vector<Fault>{{path, 0, 0, "cannot be read: " + text.error().message()}};
  return parse_settings(*text, path);
}

Fault fault_at(const std::string& path, std::string_view key, std::string message) {
  Fault fault{path, 0, 0, std::move(message)};
  const Result<std::string> text = read_file(path);
  if (!text) return fault;
  try {
    const toml::table root = toml::parse(*text);
    const auto value = root.at_path(key);
    if (value.node() != nullptr) {
      fault.line = value.node()->source().begin.line;
      fault.column = value.node()->source().begin.column;
    }
  } catch (const toml::parse_error&) {
    return fault;  // changed since it was read
  }
  return fault;
}

}  // namespace secondsight
