#include "cache/policy/structured_field.h"

#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace secondsight::cache::policy {
namespace {

using Type = StructuredValue::Type;

const char* name_of(Type type) {
  switch (type) {
    case Type::Integer:
      return "integer";
    case Type::Decimal:
      return "decimal";
    case Type::String:
      return "string";
    case Type::Token:
      return "token";
    case Type::ByteSequence:
      return "bytes";
    case Type::Boolean:
      return "boolean";
    case Type::Date:
      return "date";
    case Type::DisplayString:
      return "display";
    case Type::InnerList:
      return "list";
  }
  return "unknown";
}

std::string describe(std::string_view key, const StructuredValue& value) {
  return std::string(key) + " " + name_of(value.type) + " " + std::to_string(value.number) + " <" +
         std::string(value.text) + ">\n";
}

/// One line per member; "invalid" when the field is to be ignored.
std::string read(std::string_view text) {
  std::string members;
  DictionaryMembers dictionary(text);
  while (const auto member = dictionary.next()) members += describe(member->key, member->value);
  return dictionary.failed() ? "invalid" : members;
}

TEST(StructuredField, Dictionaries) {
  struct Row {
    const char* clause;
    std::string_view text;
    const char* members;
  };
  const Row rows[] = {
      {"RFC 9651 4.2.2: one member", "max-age=10", "max-age integer 10 <>\n"},
      {"RFC 9651 4.2.2: no value is true", "no-store", "no-store boolean 1 <>\n"},
      {"RFC 9651 4.2.2: several", "a=1,b=2 ,\tc",
       "a integer 1 <>\nb integer 2 <>\nc boolean 1 <>\n"},
      {"RFC 9651 4.2.2: duplicates in their order", "a=1, a=2", "a integer 1 <>\na integer 2 <>\n"},
      {"RFC 9651 4.2: spaces around all", "  a  ", "a boolean 1 <>\n"},
      {"RFC 9651 4.2: a tab before all", "\ta", "invalid"},
      {"RFC 9651 4.2: empty", "", ""},
      {"RFC 9651 4.2: nothing but spaces", "   ", ""},
      {"RFC 9651 4.2.2: comma at the end", "a=1,", "invalid"},
      {"RFC 9651 4.2.2: comma at the front", ",a=1", "invalid"},
      {"RFC 9651 4.2.2: empty member", "a,,b", "invalid"},
      {"RFC 9651 4.2.2: no comma", "a b", "invalid"},
      {"RFC 9651 4.2.2: semicolon for comma", "a=1; b=2", "a integer 1 <>\n"},
      {"RFC 9651 4.2.2: space before =", "a =1", "invalid"},
      {"RFC 9651 4.2.2: space after =", "a= 1", "invalid"},
      {"RFC 9651 4.2.2: no value after =", "a=", "invalid"},
      {"RFC 9651 4.2: an error behind good members", "a=1, &&&", "invalid"},

      {"RFC 9651 4.2.3.3: every character of a key", "*a9_-.*", "*a9_-.* boolean 1 <>\n"},
      {"RFC 9651 4.2.3.3: upper case", "Max-age=1", "invalid"},
      {"RFC 9651 4.2.3.3: upper case inside", "mAx-age=1", "invalid"},
      {"RFC 9651 4.2.3.3: digit first", "9a=1", "invalid"},
      {"RFC 9651 4.2.3.3: dash first", "-a=1", "invalid"},

      {"RFC 9651 4.2.4: zero", "a=0", "a integer 0 <>\n"},
      {"RFC 9651 4.2.4: leading zeros", "a=0042", "a integer 42 <>\n"},
      {"RFC 9651 4.2.4: negative", "a=-42", "a integer -42 <>\n"},
      {"RFC 9651 4.2.4: 15 digits", "a=999999999999999", "a integer 999999999999999 <>\n"},
      {"RFC 9651 4.2.4: 16 digits", "a=1000000000000000", "invalid"},
      {"RFC 9651 4.2.4: plus sign", "a=+1", "invalid"},
      {"RFC 9651 4.2.4: two signs", "a=--1", "invalid"},
      {"RFC 9651 4.2.4: sign alone", "a=-", "invalid"},
      {"RFC 9651 4.2.4: letters behind", "a=10x", "invalid"},
      {"RFC 9651 4.2.4: decimal", "a=1.5", "a decimal 1500 <>\n"},
      {"RFC 9651 4.2.4: negative decimal", "a=-0.001", "a decimal -1 <>\n"},
      {"RFC 9651 4.2.4: 12 and 3 digits", "a=999999999999.999", "a decimal 999999999999999 <>\n"},
      {"RFC 9651 4.2.4: 13 digits before the point", "a=1000000000000.0", "invalid"},
      {"RFC 9651 4.2.4: four behind", "a=1.0000", "invalid"},
      {"RFC 9651 4.2.4: none behind", "a=1.", "invalid"},
      {"RFC 9651 4.2.4: none before", "a=.5", "invalid"},
      {"RFC 9651 4.2.4: two points", "a=1.5.1", "invalid"},

      {"RFC 9651 4.2.5: string", "a=\"b, c; d\"", "a string 0 <b, c; d>\n"},
      {"RFC 9651 4.2.5: empty string", "a=\"\"", "a string 0 <>\n"},
      {"RFC 9651 4.2.5: escapes", R"(a="\"\\")", "a string 0 <\\\"\\\\>\n"},
      {"RFC 9651 4.2.5: another escape", R"(a="\n")", "invalid"},
      {"RFC 9651 4.2.5: ends in an escape", "a=\"b\\", "invalid"},
      {"RFC 9651 4.2.5: never closed", "a=\"b", "invalid"},
      {"RFC 9651 4.2.5: a tab", "a=\"\t\"", "invalid"},
      {"RFC 9651 4.2.5: beyond ASCII", "a=\"\xC3\xBC\"", "invalid"},
      {"RFC 9651 4.2.5: single quotes", "a='b'", "invalid"},

      {"RFC 9651 4.2.6: token", "a=*b:/%~Z", "a token 0 <*b:/%~Z>\n"},
      {"RFC 9651 4.2.6: ends at a separator", "a=b@", "invalid"},

      {"RFC 9651 4.2.7: bytes", "a=:aGk=:", "a bytes 0 <aGk=>\n"},
      {"RFC 9651 4.2.7: no bytes", "a=::", "a bytes 0 <>\n"},
      {"RFC 9651 4.2.7: padding is missing", "a=:aGk:", "a bytes 0 <aGk>\n"},
      {"RFC 9651 4.2.7: bits under the padding", "a=:aGl=:", "a bytes 0 <aGl=>\n"},
      {"RFC 9651 4.2.7: padding inside", "a=:a=Gk:", "invalid"},
      {"RFC 9651 4.2.7: too much padding", "a=:aGk==:", "invalid"},
      {"RFC 9651 4.2.7: nothing but padding behind", "a=:aaaa====:", "invalid"},
      {"RFC 9651 4.2.7: one character left", "a=:aGkaa:", "invalid"},
      {"RFC 9651 4.2.7: outside the alphabet", "a=:aG_-:", "invalid"},
      {"RFC 9651 4.2.7: never closed", "a=:aGk=", "invalid"},

      {"RFC 9651 4.2.8: true", "a=?1", "a boolean 1 <>\n"},
      {"RFC 9651 4.2.8: false", "a=?0", "a boolean 0 <>\n"},
      {"RFC 9651 4.2.8: neither", "a=?2", "invalid"},
      {"RFC 9651 4.2.8: nothing", "a=?", "invalid"},

      {"RFC 9651 4.2.9: date", "a=@784111777", "a date 784111777 <>\n"},
      {"RFC 9651 4.2.9: before 1970", "a=@-1", "a date -1 <>\n"},
      {"RFC 9651 4.2.9: a decimal", "a=@1.5", "invalid"},
      {"RFC 9651 4.2.9: nothing", "a=@", "invalid"},

      {"RFC 9651 4.2.10: display string", "a=%\"f%c3%bc\"", "a display 0 <f%c3%bc>\n"},
      {"RFC 9651 4.2.10: four bytes", "a=%\"%f0%9f%98%80\"", "a display 0 <%f0%9f%98%80>\n"},
      {"RFC 9651 4.2.10: upper-case escape", "a=%\"%C3%BC\"", "invalid"},
      {"RFC 9651 4.2.10: half a character", "a=%\"%c3\"", "invalid"},
      {"RFC 9651 4.2.10: a stray continuation", "a=%\"%bc\"", "invalid"},
      {"RFC 9651 4.2.10: overlong", "a=%\"%c0%af\"", "invalid"},
      {"RFC 9651 4.2.10: overlong, three bytes", "a=%\"%e0%80%af\"", "invalid"},
      {"RFC 9651 4.2.10: overlong, four bytes", "a=%\"%f0%80%80%80\"", "invalid"},
      {"RFC 9651 4.2.10: a surrogate", "a=%\"%ed%a0%80\"", "invalid"},
      {"RFC 9651 4.2.10: above U+10FFFF", "a=%\"%f4%90%80%80\"", "invalid"},
      {"RFC 9651 4.2.10: cut escape", "a=%\"%c\"", "invalid"},
      {"RFC 9651 4.2.10: never closed", "a=%\"b", "invalid"},
      {"RFC 9651 4.2.10: no quote", "a=%b", "invalid"},
      {"RFC 9651 4.2.10: beyond ASCII", "a=%\"\xC3\xBC\"", "invalid"},

      {"RFC 9651 4.2.3.2: parameters", "a=1;b;c=?0; d=\"e\", f;g=h",
       "a integer 1 <>\nf boolean 1 <>\n"},
      {"RFC 9651 4.2.3.2: no key", "a=1;", "invalid"},
      {"RFC 9651 4.2.3.2: space before", "a=1 ;b", "invalid"},
      {"RFC 9651 4.2.3.2: upper case", "a=1;B", "invalid"},
      {"RFC 9651 4.2.3.2: no value after =", "a=1;b=", "invalid"},
      {"RFC 9651 4.2.3.2: an inner list", "a=1;b=(c)", "invalid"},
      {"RFC 9651 4.2.3.2: a tab", "a=1;\tb", "invalid"},

      {"RFC 9651 4.2.1.2: inner list", "a=(1 \"b\"  c;d=2 ) ;e", "invalid"},
      {"RFC 9651 4.2.1.2: inner list and its parameters", "a=( 1 \"b\"  c;d=2 );e, f",
       "a list 0 < 1 \"b\"  c;d=2 >\nf boolean 1 <>\n"},
      {"RFC 9651 4.2.1.2: empty", "a=()", "a list 0 <>\n"},
      {"RFC 9651 4.2.1.2: spaces only", "a=(  )", "a list 0 <  >\n"},
      {"RFC 9651 4.2.1.2: never closed", "a=(1", "invalid"},
      {"RFC 9651 4.2.1.2: nothing behind the parenthesis", "a=(", "invalid"},
      {"RFC 9651 4.2.1.2: commas", "a=(1,2)", "invalid"},
      {"RFC 9651 4.2.1.2: no space between", "a=(1\"b\")", "invalid"},
      {"RFC 9651 4.2.1.2: nested", "a=((1))", "invalid"},
      {"RFC 9651 4.2.1.2: closed twice", "a=(1))", "invalid"},
      {"RFC 9651 4.2: a NUL", std::string_view("a\0", 2), "invalid"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.clause);
    EXPECT_EQ(read(row.text), row.members);
  }
}

/// Random dictionaries, together with what reading them must give.
class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  unsigned below(unsigned n) { return static_cast<unsigned>(random_()) % n; }

  std::string some_of(std::string_view first, std::string_view others) {
    std::string text(1, first[below(static_cast<unsigned>(first.size()))]);
    for (unsigned left = below(6); left > 0; --left)
      text += others[below(static_cast<unsigned>(others.size()))];
    return text;
  }
  std::string key() { return some_of("abz*", "az09_-.*"); }
  std::string digits(unsigned most) {
    std::string text;
    for (unsigned left = 1 + below(most); left > 0; --left)
      text += static_cast<char>('0' + below(10));
    return text;
  }

  std::string bare_item(StructuredValue::Type type, StructuredValue& value, std::string& text) {
    const bool is_negative = below(2) == 0;
    const std::string sign = is_negative ? "-" : "";
    value.type = type;
    value.number = 0;
    switch (type) {
      case Type::Integer:
      case Type::Date: {
        const std::string number = digits(15);
        value.number = std::stoll(sign + number);
        return (type == Type::Date ? "@" : "") + sign + number;
      }
      case Type::Decimal: {
        const std::string whole = digits(12);
        const std::string fraction = digits(3);
        value.number = std::stoll(sign + whole + (fraction + "00").substr(0, 3));
        return sign + whole + "." + fraction;
      }
      case Type::String:
        text = some_of(" a,;=()~", " a,;=()!#[]~");
        if (below(3) == 0) text += "\\\"x\\\\";
        return "\"" + text + "\"";
      case Type::Token:
        text = some_of("aZ*", "aZ09:/!#$%&'*+-.^_`|~");
        return text;
      case Type::ByteSequence:
        for (unsigned left = below(4); left > 0; --left) text += "aZ+/";
        if (below(2) == 0) text += below(2) == 0 ? "bb==" : "bb";
        return ":" + text + ":";
      case Type::Boolean:
        value.number = is_negative ? 0 : 1;
        return is_negative ? "?0" : "?1";
      case Type::DisplayString:
        text = some_of(" a,;=()~", " a,;=()\\~");
        if (below(2) == 0) text += "%c3%bc%e2%82%ac";
        return "%\"" + text + "\"";
      case Type::InnerList:
        break;
    }
    for (unsigned left = below(4); left > 0; --left) text += " " + item() + " ";
    return "(" + text + ")";
  }

  std::string item() {
    StructuredValue ignored;
    std::string ignored_text;
    return bare_item(bare_type(), ignored, ignored_text) + parameters();
  }

  std::string parameters() {
    std::string text;
    for (unsigned left = below(5) == 0 ? below(3) : 0; left > 0; --left) {
      StructuredValue ignored;
      std::string ignored_text;
      text += (below(2) == 0 ? ";" : ";  ") + key();
      if (below(2) == 0) text += "=" + bare_item(bare_type(), ignored, ignored_text);
    }
    return text;
  }

  Type bare_type() { return static_cast<Type>(below(8)); }
  Type any_type() { return static_cast<Type>(below(9)); }

  /// A field, and what read() makes of it.
  std::pair<std::string, std::string> dictionary() {
    std::string text, members;
    for (unsigned left = 1 + below(5); left > 0; --left) {
      if (!text.empty()) text += below(2) == 0 ? "," : " ,\t";
      const std::string name = key();
      StructuredValue value;
      std::string value_text;
      text += name;
      if (below(4) != 0) text += "=" + bare_item(any_type(), value, value_text);
      text += parameters();
      value.text = value_text;
      members += describe(name, value);
    }
    return {text, members};
  }

 private:
  std::mt19937 random_;
};

TEST(StructuredField, ReadsWhatWasWritten) {
  constexpr unsigned kSeed = 20261130;
  SCOPED_TRACE(kSeed);
  Generator generator(kSeed);
  for (int round = 0; round < 20000; ++round) {
    const auto [text, members] = generator.dictionary();
    ASSERT_EQ(read(text), members) << text;
  }
}

/// Changed, cut and random bytes: every member that is given lies inside the text, and reading
/// ends.
TEST(StructuredField, AnyBytesAreReadOrRefused) {
  constexpr unsigned kSeed = 9213;
  SCOPED_TRACE(kSeed);
  Generator generator(kSeed);
  constexpr std::string_view kBytes("a=1,;\"\\(): ?@%*\t-.\xC3\0Z", 22);
  int refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = generator.dictionary().first;
    for (unsigned changes = 1 + generator.below(3); changes > 0 && !text.empty(); --changes) {
      const auto at = generator.below(static_cast<unsigned>(text.size()));
      text[at] = kBytes[generator.below(static_cast<unsigned>(kBytes.size()))];
      if (generator.below(4) == 0) text.resize(at);
    }
    DictionaryMembers dictionary(text);
    std::size_t count = 0;
    while (const auto member = dictionary.next()) {
      ASSERT_FALSE(member->key.empty());
      ASSERT_LE(++count, text.size());
      for (const std::string_view view : {member->key, member->value.text}) {
        if (view.empty()) continue;
        ASSERT_GE(view.data(), text.data());
        ASSERT_LE(view.data() + view.size(), text.data() + text.size());
      }
    }
    EXPECT_EQ(dictionary.next(), std::nullopt);
    if (dictionary.failed()) ++refused;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace secondsight::cache::policy
