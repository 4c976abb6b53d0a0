#include "data/tokenizer/json/model_lists.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"

namespace mylos::data {
namespace {

using Event = Json::parse_event_t;

constexpr std::size_t largest_file = std::size_t{1} << 30U;

/// Takes the elements of the long lists while a file is parsed.
class ListReader {
 public:
  ListReader(std::string_view file, ModelLists& lists) : file_(file), lists_(lists) {}

  /// Returns whether the value is to be kept.
  bool take(int depth, Event event, Json& value) {
    if (event == Event::object_end && depth == list_depth && in_added_) {
      added_.push_back(std::move(value));
      return false;
    }
    if (event == Event::key && depth <= list_depth) {
      enter(depth, value.get_ref<const std::string&>());
    } else if (!list_.empty() && depth == list_depth) {
      begin_list(event);
    }
    if (list_.empty() || depth <= list_depth) return true;
    if (event == Event::array_start || event == Event::object_start) return begin_element(depth, event);
    if (event == Event::array_end) return end_element();
    if (event == Event::key) return take_key(value);
    return event == Event::value && take_value(depth, value);
  }

  /// Puts the added tokens back. The parser looks at all elements of a list at the end of each that is an object, so it
  /// would need quadratic time for those that it keeps.
  void put_back(Json& json) {
    const auto found = json.find("added_tokens");
    if (found == json.end() || !found->is_array()) return;
    for (Json& token : added_) found->push_back(std::move(token));
  }

 private:
  static constexpr int list_depth = 2;  // of the keys of `model`

  void enter(int depth, const std::string& key) {
    if (depth == 1) {
      in_model_ = key == "model";
      in_added_ = key == "added_tokens";
      if (in_added_) added_.clear();  // the last of several is read, as by the parser
    }
    list_ = depth == list_depth && in_model_ && (key == "vocab" || key == "merges") ? key : "";
    if (list_.empty()) return;
    bool& is_known = list_ == "vocab" ? has_vocabulary_ : has_merges_;
    if (std::exchange(is_known, true)) fail(fmt::format("{}: model.{}: the field is there twice", file_, list_));
  }

  /// Checks the type of a list by the event that begins it.
  void begin_list(Event event) {
    const bool is_vocabulary = list_ == "vocab";
    if (event == Event::value || (event == Event::object_start && !is_vocabulary)) {
      fail(fmt::format("{}: model.{}: expected {}", file_, list_, is_vocabulary ? "an object or a list" : "a list"));
    }
    if (event == Event::object_start) lists_.has_ids = true;
  }

  bool begin_element(int depth, Event event) {
    const bool is_of_object = list_ == "vocab" && lists_.has_ids;
    if (event == Event::object_start || depth > list_depth + 1 || is_of_object) fail_element();
    strings_ = 0;
    has_number_ = false;
    return true;
  }

  bool end_element() {
    if (list_ == "vocab" && strings_ == 1 && has_number_) {
      lists_.tokens.push_back({first_, number_});
    } else if (list_ == "merges" && strings_ == 2 && !has_number_) {
      lists_.merges.push_back({first_, second_});
    } else {
      fail_element();
    }
    return false;
  }

  bool take_key(const Json& key) {
    first_ = add(key.get_ref<const std::string&>());
    return false;
  }

  /// A member of an object is dropped with its key, and must be kept here for that.
  bool take_value(int depth, const Json& value) {
    const bool is_member = depth == list_depth + 1;  // of the list itself, not of an element of it
    if (is_member && list_ == "merges") {
      if (!value.is_string()) fail_element();
      take_merge(value.get_ref<const std::string&>());
      return false;
    }
    if (is_member) {
      if (!lists_.has_ids || !value.is_number_integer()) fail_element();
      lists_.tokens.push_back({first_, value.get<double>()});
      return true;
    }
    if (value.is_string() && !has_number_) {
      (strings_++ == 0 ? first_ : second_) = add(value.get_ref<const std::string&>());
    } else {
      if (!value.is_number() || has_number_) fail_element();
      has_number_ = true;
      number_ = value.get<double>();
    }
    return false;
  }

  /// Takes a merge of older files, "a b".
  void take_merge(const std::string& merge) {
    const std::size_t blank = merge.find(' ');
    if (blank == std::string::npos || merge.find(' ', blank + 1) != std::string::npos) fail_element();
    const auto whole = add(merge);
    const auto left = static_cast<std::uint32_t>(blank);
    lists_.merges.push_back({{whole.begin, left}, {whole.begin + left + 1, whole.size - left - 1}});
  }

  TokenTable::Entry add(const std::string& token) {
    const TokenTable::Entry entry{static_cast<std::uint32_t>(lists_.text.size()),
                                  static_cast<std::uint32_t>(token.size())};
    lists_.text += token;
    return entry;
  }

  [[noreturn]] void fail_element() const {
    const bool is_vocabulary = list_ == "vocab";
    const std::size_t index = is_vocabulary ? lists_.tokens.size() : lists_.merges.size();
    fail(fmt::format("{}: model.{}[{}]: expected {}", file_, list_, index,
                     !is_vocabulary   ? "two tokens, as \"a b\" or [\"a\", \"b\"]"
                     : lists_.has_ids ? "a token with its id, a whole number"
                                      : "a token with its score, as [\"a\", -1.5]"));
  }

  std::string_view file_;
  ModelLists& lists_;
  Json::array_t added_;
  bool in_added_ = false;
  bool in_model_ = false;
  bool has_vocabulary_ = false;
  bool has_merges_ = false;
  std::string list_;  // the list that is being read; empty outside of both
  TokenTable::Entry first_;
  TokenTable::Entry second_;
  int strings_ = 0;  // of the element
  bool has_number_ = false;
  double number_ = 0;
};

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, std::string_view file) {
  if (text.size() > largest_file) fail(fmt::format("{}: has {} bytes; at most 1 GiB is read", file, text.size()));
  TokenizerJson read;
  ListReader reader(file, read.lists);
  const Json::parser_callback_t watch = [&](int depth, Event event, Json& value) {
    return reader.take(depth, event, value);
  };
  read.json = parse_json(text, file, watch);
  reader.put_back(read.json);
  return read;
}

}  // namespace mylos::data
