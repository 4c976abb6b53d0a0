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
    if (event == Event::key && depth <= list_depth) enter(depth, value.get_ref<const std::string&>());
    if (list_.empty() || depth <= list_depth) {
      if (!list_.empty() && event == Event::object_start) lists_.has_ids |= list_ == "vocab";
      return true;
    }
    if (event == Event::array_start || event == Event::object_start) return begin_element(depth, event);
    if (event == Event::array_end) return end_element();
    if (event == Event::key) return take_key(value);
    return event == Event::value && take_value(depth, value);
  }

 private:
  static constexpr int list_depth = 2;  // of the keys of `model`

  void enter(int depth, const std::string& key) {
    if (depth == 1) in_model_ = key == "model";
    list_ = depth == list_depth && in_model_ && (key == "vocab" || key == "merges") ? key : "";
  }

  bool begin_element(int depth, Event event) {
    if (event == Event::object_start || depth > list_depth + 1) fail_element();
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
      if (!lists_.has_ids || !value.is_number()) fail_element();
      lists_.tokens.push_back({first_, value.get<double>()});
      return true;
    }
    if (value.is_string()) {
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
                     is_vocabulary ? "a token with its number" : "two tokens, as \"a b\" or [\"a\", \"b\"]"));
  }

  std::string_view file_;
  ModelLists& lists_;
  bool in_model_ = false;
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
  return read;
}

}  // namespace mylos::data
