#include "data/text/chat_format.hpp"

#include <fmt/format.h>

#include <array>
#include <ctime>
#include <span>
#include <utility>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"

namespace mylos::data {
namespace {

constexpr const char* config_name = "tokenizer_config.json";
constexpr const char* template_name = "chat_template.jinja";

using ByteRange = std::pair<std::size_t, std::size_t>;

constexpr const char* time_format = "%Y-%m-%d %H:%M:%S";

std::tm parse_time(const std::string& text) {
  std::tm time{};
  const char* const end = ::strptime(text.c_str(), time_format, &time);
  ensure(
      end != nullptr && *end == '\0',
      fmt::format("the chat-time of the run is \"{}\", and not a time such as 2026-11-30 21:25:29", printable(text)));
  time.tm_isdst = -1;
  std::mktime(&time);  // sets the time zone
  return time;
}

/// Returns the template `name` of the list that tokenizer_config.json holds, or null.
const Json* find_in_list(const Json& list, std::string_view name, const JsonLocation& location) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonLocation item(location, i);
    if (string_member(list[i], "name", item) == name) return &member(list[i], "template", item);
  }
  return nullptr;
}

CodePointRange code_points(std::string_view text, ByteRange bytes) {
  const auto begin = count_code_points(text.substr(0, bytes.first));
  const auto size = count_code_points(text.substr(bytes.first, bytes.second - bytes.first));
  return {static_cast<unsigned>(begin), static_cast<unsigned>(begin + size)};
}

/// Checks "messages" of a row, and returns them.
const OrderedJson& read_messages(const OrderedJson& row, std::string_view name) {
  const JsonLocation location(name);
  const JsonLocation list(location, "messages");
  const Json messages = member(Json(row), "messages", location);
  if (as_list(messages, list).empty()) list.fail("a conversation has no messages");
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const JsonLocation item(list, i);
    string_member(as_object(messages[i], item), "role", item);
  }
  return row["messages"];
}

/// Returns what `render` returns. Its errors also name the row at `location`.
template <class Render>
auto rendered(std::string_view location, const Render& render) {
  try {
    return render();
  } catch (const std::runtime_error& error) {
    fail(fmt::format("{}: messages: {}", location, on_one_line(error.what())));
  }
}

}  // namespace

std::string present_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), time_format, &local);
  return text.data();
}

ChatFormat::ChatFormat(const std::filesystem::path& directory, const std::string& time)
    : directory_(directory), time_(parse_time(time.empty() ? present_time() : time)) {
  const auto config_path = directory / config_name, template_path = directory / template_name;
  const std::string name = config_path.string();
  const Json config = std::filesystem::exists(config_path) ? read_json(config_path) : Json::object();
  const JsonLocation location(name);
  for (const auto& [key, value] : as_object(config, location).items()) {
    const Json& text = value.is_object() && value.contains("content") ? value["content"] : value;
    if (!key.ends_with("_token") || !text.is_string()) continue;  // also add_bos_token, a switch
    special_tokens_.emplace_back(key, text.get<std::string>());
    if (key == "eos_token") end_text_ = text.get<std::string>();
  }
  std::string sources;
  const auto use = [&](ChatTemplate& into, const std::string& text, const std::string& from) {
    try {
      into.parsed = std::make_unique<jinja::Template>(text, from);
    } catch (const std::runtime_error& error) {
      into.refusal = error.what();
    }
    checksum_ = crc32c(std::as_bytes(std::span(sources += text)));
  };
  const Json* const held = find_member(config, "chat_template", location);
  const std::string place = name + ": chat_template";
  if (std::filesystem::exists(template_path)) {
    const std::string text = FileReader().read_text(template_path);
    ensure_utf8(text, template_path.string());
    use(template_, text, template_path.string());
    const auto others = directory / "additional_chat_templates";
    if (std::filesystem::exists(others / "tool_use.jinja")) {
      with_tools_.refusal = fmt::format(
          "{} is not supported; leave tools out, or move its templates and {} into a list, chat_template of {}",
          others.string(), template_name, config_name);
    }
  } else if (held != nullptr && held->is_array()) {
    const JsonLocation list(location, "chat_template");
    const Json* const usual = find_in_list(*held, "default", list);
    if (usual == nullptr) list.fail("none of the templates is named \"default\"");
    use(template_, as_string(*usual, list), place);
    if (const Json* const other = find_in_list(*held, "tool_use", list))
      use(with_tools_, as_string(*other, list), place);
  } else if (held != nullptr && !held->is_null()) {
    const JsonLocation one(location, "chat_template");
    if (!held->is_string()) one.fail(fmt::format("expected string or list, found {}", held->type_name()));
    use(template_, held->get<std::string>(), place);
  }
}

const jinja::Template& ChatFormat::template_of(const OrderedJson& row) const {
  const bool has_tools = row.contains("tools") && !row["tools"].is_null();
  const ChatTemplate& used = has_tools && with_tools_.exists() ? with_tools_ : template_;
  ensure(used.refusal.empty(), used.refusal);
  ensure(used.parsed != nullptr,
         fmt::format("{} has no chat_template, neither in {} nor as {}; give prompt and completion "
                     "instead of messages, or use an instruction-tuned model's directory",
                     directory_.string(), config_name, template_name));
  return *used.parsed;
}

jinja::Template::Rendering ChatFormat::render(const OrderedJson& messages, const OrderedJson& row, bool asks) const {
  auto variables = special_tokens_;
  variables.emplace_back("messages", messages);
  variables.emplace_back("tools", row.contains("tools") ? row["tools"] : OrderedJson());
  variables.emplace_back("documents", OrderedJson());
  variables.emplace_back("add_generation_prompt", asks);
  return template_of(row).render(variables, time_);
}

std::vector<std::pair<std::size_t, std::size_t>> ChatFormat::assistant_spans(const OrderedJson& row,
                                                                             std::string_view whole,
                                                                             std::size_t first) const {
  const OrderedJson& messages = row["messages"];
  const auto beginning = [&](std::size_t size) {
    return OrderedJson(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(size));
  };
  std::vector<ByteRange> spans;
  for (std::size_t i = first; i < messages.size(); ++i) {
    if (messages[i]["role"] != "assistant") continue;
    std::string before;
    try {
      before = render(beginning(i), row, true).text;
    } catch (const std::runtime_error&) {
      if (i > 0) throw;
      fail(
          fmt::format("the conversation begins with the assistant, and the template needs a message before that; add a "
                      "user message, or use {}",
                      setting("loss-on", "all")));
    }
    const std::string after = render(beginning(i + 1), row, false).text;
    if (!after.starts_with(before) || !whole.starts_with(after)) {
      fail(
          fmt::format("what the template writes of messages[{}] does not follow the messages before it with the "
                      "generation prompt, or changes with those after it; put it into a generation block",
                      i));
    }
    const std::size_t end = after.find_last_not_of(" \t\r\n\v\f") + 1;
    if (end > before.size()) spans.emplace_back(before.size(), end);
  }
  return spans;
}

SupervisedText ChatFormat::conversation(const OrderedJson& row, LossOn loss_on, std::string_view location) const {
  const OrderedJson& messages = read_messages(row, location);
  return rendered(location, [&] {
    jinja::Template::Rendering whole = render(messages, row, false);
    const bool is_last_only = loss_on == LossOn::completion;
    std::vector<ByteRange> spans;
    if (loss_on == LossOn::all) {
      spans.emplace_back(0, whole.text.size());
    } else if (template_of(row).has_generation()) {
      spans = std::move(whole.generated);
      if (is_last_only && spans.size() > 1) spans.erase(spans.begin(), spans.end() - 1);
    } else {
      spans = assistant_spans(row, whole.text, is_last_only ? messages.size() - 1 : 0);
    }
    SupervisedText result{std::move(whole.text), {}};
    for (const ByteRange& span : spans) result.supervised.push_back(code_points(result.text, span));
    return result;
  });
}

std::string ChatFormat::prompt(const OrderedJson& row, std::string_view location) const {
  const OrderedJson& messages = read_messages(row, location);
  return rendered(location, [&] { return render(messages, row, true).text; });
}

}  // namespace mylos::data
