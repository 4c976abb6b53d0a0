#pragma once

#include <cstdint>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/text/python_json.hpp"
#include "core/base/text/unicode.hpp"
#include "data/jinja/template.hpp"

/// Conversations as texts, by a model's own template.
namespace mylos::data {

/// The tokens that the loss counts.
enum class LossOn {
  assistant,   ///< what the assistant says
  completion,  ///< the completion of a prompt; in a conversation what the assistant says at its end
  all,         ///< every token
};

/// A text, and the parts of it whose tokens the loss counts.
struct SupervisedText {
  std::string text;
  std::vector<CodePointRange> supervised;
};

/// Returns the local time as ChatFormat takes it: "2026-11-30 21:25:29".
std::string present_time();

class ChatFormat {
 public:
  /// Reads chat_template.jinja, else chat_template of tokenizer_config.json, which may be a list with one named
  /// "default", and perhaps one named "tool_use" for rows with tools; and the special tokens of tokenizer_config.json.
  /// A directory may lack both files. strftime_now gives `time` in all renderings; empty: the present. Errors:
  /// std::runtime_error naming the file, and for what is no time.
  explicit ChatFormat(const std::filesystem::path& directory, const std::string& time = {});

  /// Renders a conversation: "messages", each with a "role", and perhaps "tools". Without {% generation %} blocks, the
  /// assistant's part is the text between the rendering of the messages before with the generation prompt, and that
  /// with the message, without white space at its end. `location` names the row in errors. Errors: std::runtime_error
  /// if there is no template, if it is not supported or fails, or if one of these texts does not begin the next and the
  /// whole.
  SupervisedText conversation(const OrderedJson& row, LossOn loss_on, std::string_view location) const;
  /// Renders a conversation with the generation prompt. Errors: as above.
  std::string prompt(const OrderedJson& row, std::string_view location) const;

  /// Returns the text of eos_token; empty if there is none.
  const std::string& end_text() const { return end_text_; }
  /// Returns the checksum of the templates' sources; nullopt if there is none.
  std::optional<std::uint32_t> checksum() const { return checksum_; }

 private:
  /// A template, or why it cannot be used. Rows that need none do not see the refusal.
  struct ChatTemplate {
    std::unique_ptr<const jinja::Template> parsed = {};
    std::string refusal = {};
    bool exists() const { return parsed != nullptr || !refusal.empty(); }
  };

  const jinja::Template& template_of(const OrderedJson& row) const;
  jinja::Template::Rendering render(const OrderedJson& messages, const OrderedJson& row, bool asks) const;
  /// Returns the bytes of `whole`, the rendered conversation, that the assistant says from message `first` on.
  std::vector<std::pair<std::size_t, std::size_t>> assistant_spans(const OrderedJson& row, std::string_view whole,
                                                                   std::size_t first) const;

  std::filesystem::path directory_;
  std::tm time_;
  std::vector<std::pair<std::string, jinja::Value>> special_tokens_;
  std::string end_text_;
  ChatTemplate template_, with_tools_;
  std::optional<std::uint32_t> checksum_;
};

}  // namespace mylos::data
