#include "tasks/language_modeling/generator.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/unicode.hpp"
#include "core/device.hpp"
#include "core/kernels/scratch.hpp"
#include "core/numeric.hpp"
#include "data/huggingface/config_reader.hpp"
#include "families/model_families.hpp"
#include "train/engine/memory/memory.hpp"
#include "train/engine/selection/gemm_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace mylos::tasks {
namespace {

const data::Tokenizer& tokenizer_of(const LanguageTask& task) {
  const data::Tokenizer* tokenizer = task.loaded().tokenizer();
  if (tokenizer == nullptr) families::fail_without_tokenizer(task.loaded().files().directory());
  return *tokenizer;
}

/// A prompt whose products are proven.
constexpr BatchShape proven_prompt{.samples = 1, .rows = 256, .longest = 256};

/// Returns the task. Errors: std::runtime_error if its weights are larger than the free memory.
const LanguageTask& with_room_for_weights(const LanguageTask& task, Precision precision) {
  const std::size_t needed = task.model().table().size() * bytes_of(precision), available = train::available_memory();
  ensure(needed <= available, fmt::format("the weights of {} need {} of memory in {}, and {} are free{}{}",
                                          task.loaded().files().directory().string(), bytes_text(needed),
                                          to_string(precision), bytes_text(available), train::address_space_note(),
                                          precision == Precision::float32 ? "; use --precision bfloat16" : ""));
  return task;
}

/// Returns the tokens that end a text: those of generation_config.json if it names any, else those of config.json.
std::vector<data::TokenId> end_tokens(const LoadedModel& loaded) {
  std::vector<data::TokenId> ends = loaded.text().end_tokens;
  const auto path = loaded.files().directory() / "generation_config.json";
  if (!is_present(path)) return ends;
  const data::ModelConfig config(FileReader(), path);
  data::ConfigReader(config, "a model").read_ids("eos_token_id", loaded.text().vocabulary, ends);
  return ends;
}

constexpr std::size_t longest_character = 4;  // bytes of UTF-8

/// Returns the length in bytes of the character that begins with `byte`; 1 if no character begins with it.
std::size_t character_length(unsigned char byte) {
  if (byte >= 0xF8U) return 1;
  if (byte >= 0xF0U) return 4;
  if (byte >= 0xE0U) return 3;
  return byte >= 0xC0U ? 2 : 1;
}

/// Returns `text` without the characters that begin both it and `other`.
std::string without_beginning(const std::string& text, std::string_view other) {
  auto same = static_cast<std::size_t>(std::ranges::mismatch(text, other).in1 - text.begin());
  while (same > 0 && same < text.size() && is_continuation(text[same])) --same;
  return text.substr(same);
}

}  // namespace

/// A prompt being continued.
struct Generator::Sequence {
  std::size_t index;  ///< its slot, and its index in the call
  const Prompt* prompt;
  GeneratedText text;
  std::size_t most;  ///< most tokens of its continuation
  Continuation result = {};

  bool is_done() const { return !result.stop.empty(); }
};

Generator::Generator(const RunConfig& run, const Notice& notice, bool chats)
    : task_(FileReader(), run, notice),
      config_(language_config(run)),
      tokenizer_(tokenizer_of(task_)),
      ends_(end_tokens(task_.loaded())),
      gemm_(train::choose_gemm(*parallel::make_self_communicator(), space_, run.engine.gemm,
                               [&] { return train::products_of_run(task_.model(), {}, proven_prompt); })),
      parameters_(space_, with_room_for_weights(task_, run.engine.precision), run.engine.precision),
      decoder_(task_.loaded().text().decoder(run.engine.precision, task_.model().table())),
      sampler_(config_.generation.sampling, run.engine.seed) {
  if (!chats) return;
  chat_.emplace(run.task.model);
  const std::vector<data::TokenId> end = tokenizer_.encode(chat_->end_text());
  if (end.size() == 1) ends_.push_back(end.front());
}

/// Returns the ids of a conversation, which the template begins and ends.
std::vector<data::TokenId> Generator::conversation_ids(const std::string& text, const std::string& name) const {
  OrderedJson row = {{"messages", {{{"role", "user"}, {"content", text}}}}};
  if (text.starts_with('[') || text.starts_with('{')) {
    const OrderedJson given = parse_ordered_json(text, name);
    row = given.is_object() ? given : OrderedJson{{"messages", given}};
  }
  return tokenizer_.encode(chat_->prompt(row, name));
}

Prompt Generator::read_prompt(const std::string& text, std::uint64_t number) const {
  const families::TextModel& shape = task_.loaded().text();
  Prompt prompt;
  prompt.number = number;
  prompt.text = text;
  const std::string name = fmt::format("prompt {}", number + 1);
  const std::optional<data::TokenId> begin = tokenizer_.first_token(shape.begin_token);
  if (begin && !config_.no_bos && !chat_) prompt.ids.push_back(*begin);
  prompt.text_begin = prompt.ids.size();
  const auto ids = chat_ ? conversation_ids(text, name) : tokenizer_.encode(text);
  prompt.ids.insert(prompt.ids.end(), ids.begin(), ids.end());
  ensure(!prompt.ids.empty(),
         fmt::format("{} has no tokens, and --no-bos adds none; enter a text, or leave out --no-bos", name));
  ensure(prompt.ids.size() <= shape.positions,
         fmt::format("{} has {} tokens, and the model has {} positions (max_position_embeddings); shorten it", name,
                     prompt.ids.size(), shape.positions));
  return prompt;
}

/// The prompt and its continuation together may have as many tokens as the model has positions.
std::size_t Generator::most_tokens(const Prompt& prompt) const {
  return std::min(config_.generation.max_new_tokens, task_.loaded().text().positions - prompt.ids.size());
}

void Generator::reserve(std::span<const Prompt> prompts) {
  families::DecoderShape shape{.slots = prompts.size()};
  for (const Prompt& prompt : prompts) {
    shape.longest_prompt = std::max(shape.longest_prompt, prompt.ids.size());
    shape.positions = std::max(shape.positions, prompt.ids.size() + most_tokens(prompt));
  }
  Arena planned;
  decoder_->plan(planned, shape);
  if (planned.peak() > arena_.capacity()) {
    arena_ = {};
    const TeamProcessor processor{.threads = static_cast<std::size_t>(space_.concurrency()), .on_host = runs_on_host};
    const std::size_t needed = planned.peak() + decoder_->scratch_bytes(shape, processor);
    const std::size_t available = train::available_memory();
    ensure(needed <= available,
           fmt::format("{} of {} tokens need {} of memory, and {} are free{}; use a smaller --batch or "
                       "--max-new-tokens, or --precision bfloat16",
                       count_of(shape.slots, "sequence"), shape.positions, bytes_text(needed), bytes_text(available),
                       train::address_space_note()));
    arena_ = Arena("mylos::generation", planned.peak());
  }
  decoder_->begin(pass(), shape);
}

void Generator::take_token(Sequence& sequence, std::span<const float> logits, const TextAction& action) {
  Continuation& result = sequence.result;
  const std::size_t position = sequence.prompt->ids.size() + result.ids.size();
  const std::optional<ChosenToken> token = sampler_.choose(logits, sequence.prompt->number, position);
  ensure(token.has_value(),
         fmt::format("prompt {}: the logits of token {} are not finite; use another --precision, or check the weights",
                     sequence.prompt->number + 1, result.ids.size() + 1));
  result.ids.push_back(token->id);
  result.log_probabilities.push_back(token->log_probability);
  if (std::ranges::find(ends_, token->id) != ends_.end()) {
    result.stop = "eos";
  } else {
    sequence.text.append(token->id);
    if (result.ids.size() == sequence.most) {
      result.stop = sequence.most == config_.generation.max_new_tokens ? "length" : "positions";
    }
  }
  if (action) action(sequence.index, sequence.text.take_more(sequence.is_done()), sequence.is_done());
}

void Generator::take_tokens(std::span<Sequence* const> rows, const ConstMatrix<float>& logits,
                            const TextAction& action) {
  const auto host = Kokkos::create_mirror_view_and_copy(HostSpace(), logits);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    take_token(*rows[row], {host.data() + row * host.extent(1), host.extent(1)}, action);
  }
}

std::vector<Continuation> Generator::generate(std::span<const Prompt> prompts, const TextAction& action) {
  if (prompts.empty()) return {};
  reserve(prompts);
  std::vector<Sequence> sequences;
  for (const Prompt& prompt : prompts) {
    const std::span text = std::span(prompt.ids).subspan(prompt.text_begin);
    sequences.push_back({sequences.size(), &prompt, {tokenizer_, text}, most_tokens(prompt)});
  }
  for (Sequence& sequence : sequences) {
    if (sequence.most == 0) {
      sequence.result.stop = "positions";
      if (action) action(sequence.index, {}, true);
      continue;
    }
    Sequence* const row = &sequence;
    take_tokens({&row, 1}, decoder_->prefill(pass(), sequence.index, sequence.prompt->ids), action);
  }
  std::vector<Sequence*> rows;
  std::vector<std::size_t> slots;
  std::vector<std::int32_t> tokens;
  for (;;) {
    rows.clear(), slots.clear(), tokens.clear();
    for (Sequence& sequence : sequences) {
      if (sequence.is_done()) continue;
      rows.push_back(&sequence);
      slots.push_back(sequence.index);
      tokens.push_back(sequence.result.ids.back());
    }
    if (rows.empty()) break;
    take_tokens(rows, decoder_->step(pass(), slots, tokens), action);
  }
  std::vector<Continuation> results;
  for (Sequence& sequence : sequences) {
    sequence.result.text = sequence.text.text();
    results.push_back(std::move(sequence.result));
  }
  return results;
}

GeneratedText::GeneratedText(const data::Tokenizer& tokenizer, std::span<const data::TokenId> prompt)
    : tokenizer_(tokenizer) {
  for (const data::TokenId id : prompt) append(id);
  prompt_ = ids_.size();
  begin_from(prompt_ - open_tokens());
}

void GeneratedText::append(data::TokenId id) {
  if (id < 0 || static_cast<std::size_t>(id) >= tokenizer_.size()) return;
  ids_.push_back(id);
  if (!tokenizer_.joins_bytes()) return;
  if (!tokenizer_.bytes(id).empty() || (run_ > 0 && !has_text(ids_.size() - 1))) {
    ++run_;
  } else {
    run_ = 0;
  }
}

std::string GeneratedText::decode(std::size_t begin, std::size_t end) const {
  return tokenizer_.decode(std::span(ids_).subspan(begin, end - begin));
}

bool GeneratedText::has_text(std::size_t index) const { return !decode(index, index + 1).empty(); }

std::string GeneratedText::text() const { return without_beginning(decode(0, ids_.size()), decode(0, prompt_)); }

std::string GeneratedText::take_more(bool is_whole) {
  const std::size_t end = is_whole ? ids_.size() : ids_.size() - open_tokens();
  if (end <= begin_) return "";
  const std::size_t taken = decode(context_, begin_).size();
  std::string more = decode(context_, end).substr(taken);
  if (begin_ < prompt_) more = without_beginning(more, decode(context_, prompt_).substr(taken));
  begin_from(end);
  return more;
}

void GeneratedText::begin_from(std::size_t index) {
  for (std::size_t i = index; i > begin_; --i) {
    if (!has_text(i - 1)) continue;
    context_ = i - 1;
    break;
  }
  begin_ = index;
}

std::size_t GeneratedText::open_tokens() const {
  if (tokenizer_.joins_bytes()) return run_;
  std::string bytes;
  for (std::size_t count = 1; count <= ids_.size() - begin_ && bytes.size() < longest_character; ++count) {
    const std::size_t index = ids_.size() - count;
    if (!has_text(index)) continue;  // the bytes on both sides of it may form a character
    const std::string before = tokenizer_.bytes(ids_[index]);
    if (before.empty()) return 0;
    bytes.insert(0, before);
    const auto first = std::find_if_not(bytes.rbegin(), bytes.rend(), is_continuation);
    if (first == bytes.rend()) continue;
    const auto length = static_cast<std::size_t>(first - bytes.rbegin()) + 1;
    return character_length(static_cast<unsigned char>(*first)) > length ? count : 0;
  }
  return 0;
}

}  // namespace mylos::tasks
