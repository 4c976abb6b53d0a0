#include "data/text/json_documents.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/setting_error.hpp"

namespace mylos::data {
namespace {

constexpr const char* ids_field = "input_ids";
constexpr const char* labels_field = "labels";
constexpr const char* messages_field = "messages";
constexpr const char* prompt_field = "prompt";
constexpr const char* completion_field = "completion";
constexpr const char* default_text_field = "text";
constexpr const char* moves_field = "Moves";

/// Parses one line as JSON. Errors contain the position in the text, and `location` has the line of the file.
Json parse_line(std::string_view line, const std::string& location) {
  try {
    return parse_json(line, location);
  } catch (const std::runtime_error& error) {
    constexpr std::string_view in_text = " at line 1, column ";
    std::string message = error.what();
    if (const auto at = message.find(in_text, location.size()); at != std::string::npos) {
      message.replace(at, in_text.size(), " at column ");
    }
    fail(message);
  }
}

void take_ids(const Json& list, const JsonLocation& location, std::vector<TokenId>& ids) {
  for (std::size_t i = 0; i < as_list(list, location).size(); ++i) {
    const JsonLocation item(location, i);
    const std::size_t id = as_count(list[i], item);
    if (id > static_cast<std::size_t>(std::numeric_limits<TokenId>::max()))
      item.fail(fmt::format("{} is not a token id", id));
    ids.push_back(static_cast<TokenId>(id));
  }
}

void join_moves(const Json& list, const JsonLocation& location, std::string& text) {
  if (!list.is_array()) location.fail("expected a list of strings");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) text += ' ';
    text += as_string(list[i], JsonLocation(location, i));
  }
}

}  // namespace

void check_all_supervised(const Supervision& supervision, const std::string& name) {
  if (supervision.loss_on.value_or(LossOn::all) == LossOn::all) return;
  const bool is_assistant = supervision.loss_on == LossOn::assistant;
  throw SettingError("loss-on", is_assistant ? "assistant" : "completion",
                     fmt::format("{} has no {}; leave it out", name,
                                 is_assistant ? "messages" : "prompt and completion, and no messages"));
}

JsonDocuments::JsonDocuments(const std::filesystem::path& path, std::string text_field, Supervision supervision)
    : DocumentReader(path), field_(std::move(text_field)), supervision_(std::move(supervision)) {}

bool JsonDocuments::next(Document& document) {
  std::string_view line;
  do {
    if (!lines_.next(line)) return false;
  } while (line.find_first_not_of(" \t\r") == std::string_view::npos);
  const std::string name = lines_.location();
  const JsonLocation location(name);
  const Json object = parse_line(line, name);
  if (form_ == Form::undecided) decide(as_object(object, location), location);
  const Json& value = member(object, field_, location);
  const JsonLocation value_location(location, field_);
  document.text.clear();
  document.ids.clear();
  document.has_ids = form_ == Form::ids;
  document.begins = document.ends = has_labels_ || form_ == Form::messages;
  document.supervised_text.reset();
  document.supervised.clear();
  document.line = lines_.number();
  if (form_ == Form::ids) take_ids(value, value_location, document.ids);
  if (form_ == Form::ids) take_labels(object, location, document);
  if (form_ == Form::messages) {
    const LossOn loss_on = supervision_.loss_on.value_or(LossOn::assistant);
    SupervisedText text = chat_->conversation(try_parse_ordered_json(line), loss_on, name);
    document.text = std::move(text.text);
    if (loss_on != LossOn::all) document.supervised_text = std::move(text.supervised);
  }
  if (form_ == Form::completion) take_completion(object, location, document);
  if (form_ == Form::text) document.text = as_string(value, value_location);
  if (form_ == Form::moves) join_moves(value, value_location, document.text);
  return true;
}

void JsonDocuments::decide(const Json& object, const JsonLocation& location) {
  const bool is_named = !field_.empty();
  for (const auto& [form, field] : {std::pair{Form::ids, ids_field}, std::pair{Form::messages, messages_field},
                                    std::pair{Form::completion, prompt_field},
                                    std::pair{Form::text, default_text_field}, std::pair{Form::moves, moves_field}}) {
    if (!object.contains(field) || (is_named && (field_ != field || object[field].is_string()))) continue;
    // A prompt without a completion beside a text is another field.
    if (form == Form::completion && !object.contains(completion_field) && object.contains(default_text_field)) continue;
    form_ = form;
    field_ = field;
    has_labels_ = form == Form::ids && object.contains(labels_field);
    const bool has_turns = form == Form::messages, has_prompt = form == Form::completion;
    if (has_turns || has_prompt) chat_.emplace(supervision_.directory, supervision_.chat_time);
    const bool has_part = has_turns || has_labels_ || (has_prompt && supervision_.loss_on == LossOn::completion);
    if (!has_part) check_all_supervised(supervision_, lines_.path().string());
    return;
  }
  if (is_named) {
    form_ = Form::text;
    return check_all_supervised(supervision_, lines_.path().string());
  }
  location.fail(
      "none of the keys 'text', 'messages', 'prompt', 'input_ids' and 'Moves'; give the one with the text by " +
      setting("text-field"));
}

void JsonDocuments::take_labels(const Json& object, const JsonLocation& location, Document& document) const {
  const JsonLocation list(location, labels_field);
  if (!has_labels_) {
    if (object.contains(labels_field)) list.fail("the first line has no labels");
    return;
  }
  const Json& labels = as_list(member(object, labels_field, location), list);
  if (labels.size() != document.ids.size()) {
    list.fail(fmt::format("{} labels for {} tokens of {}", labels.size(), document.ids.size(), ids_field));
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const bool is_left_out = labels[i] == no_label;
    if (!is_left_out && labels[i] != document.ids[i]) {
      JsonLocation(list, i).fail(
          fmt::format("{} is neither {} nor the token itself, {}", labels[i].dump(), no_label, document.ids[i]));
    }
    document.supervised.push_back(is_left_out ? 0 : 1);
  }
}

void JsonDocuments::take_completion(const Json& object, const JsonLocation& location, Document& document) const {
  for (const char* field : {prompt_field, completion_field}) {
    if (const auto found = object.find(field); found == object.end() || !found->is_array()) continue;
    JsonLocation(location, field)
        .fail("expected string, found list; put the messages of prompt and completion into one list, 'messages'");
  }
  document.text = string_member(object, prompt_field, location);
  const auto begin = static_cast<unsigned>(count_code_points(document.text));
  document.text += string_member(object, completion_field, location);
  document.ends = supervision_.ends && !chat_->end_text().empty();
  if (document.ends) document.text += chat_->end_text();
  if (supervision_.loss_on == LossOn::all) return;
  document.supervised_text = {{begin, static_cast<unsigned>(count_code_points(document.text))}};
}

}  // namespace mylos::data
