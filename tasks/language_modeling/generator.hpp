#pragma once

#include "core/arena.hpp"
#include "data/text/chat_format.hpp"
#include "data/tokenizer/tokenizer.hpp"
#include "families/interface/text_decoder.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tasks/language_modeling/sampling.hpp"
#include "train/engine/models/initial_parameters.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Generates continuations of prompts with a language model that is loaded once.
namespace mylos::tasks {

/// Decodes the text of a continuation. Tokens are decoded together with the prompt, because the first token of a text
/// loses its leading space, and because a character may consist of several tokens.
class GeneratedText {
 public:
  /// `prompt` are the ids of the prompt's text, without BOS. `tokenizer` must outlive this object.
  GeneratedText(const data::Tokenizer& tokenizer, std::span<const data::TokenId> prompt);

  /// Appends a token. A token without a piece in the tokenizer (vocabulary padding) produces no text.
  void append(data::TokenId id);
  /// Returns the text of all appended tokens.
  std::string text() const;
  /// Returns the text of the tokens since the last call, so that all that was returned adds up to text(). Omits tokens
  /// at the end whose text depends on the next token, unless `is_whole` is true, which says that no token follows.
  /// Decodes only these tokens.
  std::string take_more(bool is_whole);

 private:
  std::string decode(std::size_t begin, std::size_t end) const;
  bool has_text(std::size_t index) const;
  void begin_from(std::size_t index);
  /// Returns the number of tokens at the end that form an incomplete character, or a run of bytes that may have no
  /// characters in the end.
  std::size_t open_tokens() const;

  const data::Tokenizer& tokenizer_;
  std::vector<data::TokenId> ids_;
  std::size_t prompt_ = 0;   ///< number of tokens of the prompt
  std::size_t begin_ = 0;    ///< first token whose text has not been taken
  std::size_t context_ = 0;  ///< last token with a text before it, as the first token of a text loses its space
  std::size_t run_ = 0;      ///< number of tokens at the end that are decoded as one, if tokenizer_.joins_bytes()
};

/// A prompt as ids, including BOS if the model has one.
struct Prompt {
  std::uint64_t number = 0;  ///< number among the command's prompts, from 0; selects the random draws
  std::vector<data::TokenId> ids;
  std::size_t text_begin = 0;  ///< number of ids before those of its text
  std::string text = {};
};

struct Continuation {
  std::vector<data::TokenId> ids;         ///< including the EOS that ended it
  std::vector<double> log_probabilities;  ///< one per token, see ChosenToken
  std::string text;                       ///< text of the ids, without the prompt
  /// "eos"; "length": the requested number of tokens was reached; "positions": the model has no more positions.
  std::string_view stop;
};

class Generator {
 public:
  /// Loads the model of `run`; `chats`: prompts are conversations. Errors: std::runtime_error if it has no weights or
  /// no tokenizer, and those of LanguageTask.
  Generator(const RunConfig& run, const Notice& notice, bool chats = false);

  /// Tokenizes a text, which may be empty if the model has a BOS, or a conversation. Errors: std::runtime_error if the
  /// text is not UTF-8, has no tokens, or has more tokens than the model has positions; and those of ChatFormat.
  Prompt read_prompt(const std::string& text, std::uint64_t number) const;

  /// Called with the text that a token adds to prompt `index` of a call, and whether it was the last token.
  using TextAction = std::function<void(std::size_t index, std::string_view more, bool is_done)>;
  /// Continues the prompts together. Each continuation is the same as for the prompt alone. Errors: std::runtime_error
  /// if the memory is insufficient or a logit is not finite.
  std::vector<Continuation> generate(std::span<const Prompt> prompts, const TextAction& action = {});

 private:
  struct Sequence;

  nn::Pass pass() { return {space_, gemm_, parameters_.store(), parameters_.hooks(), arena_}; }
  std::vector<data::TokenId> conversation_ids(const std::string& text, const std::string& name) const;
  std::size_t most_tokens(const Prompt& prompt) const;
  void reserve(std::span<const Prompt> prompts);
  void take_tokens(std::span<Sequence* const> rows, const ConstMatrix<float>& logits, const TextAction& action);
  void take_token(Sequence& sequence, std::span<const float> logits, const TextAction& action);

  LanguageTask task_;
  LanguageConfig config_;
  const data::Tokenizer& tokenizer_;  ///< of task_
  std::optional<data::ChatFormat> chat_;
  std::vector<data::TokenId> ends_;  ///< end a continuation
  ExecutionSpace space_;
  Gemm gemm_;
  train::LoadedParameters parameters_;
  std::unique_ptr<families::TextDecoder> decoder_;
  Arena arena_;
  Sampler sampler_;
};

}  // namespace mylos::tasks
