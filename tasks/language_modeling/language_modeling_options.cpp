#include "tasks/language_modeling/language_modeling_options.hpp"

#include "core/base/option_kinds.hpp"
#include "tasks/language_modeling/language_config.hpp"

#include <string>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::string_view files = "Model and data", documents = "Documents", generation = "Generation";
constexpr unsigned reads_documents = train_command | eval_command | prepare_command | bench_command | plan_command;

using OwnOption = Option<LanguageConfig>;

OwnOption own(std::string name, std::vector<std::string> aliases, std::string placeholder, std::string_view section,
              unsigned commands, std::string help) {
  return named_option<LanguageConfig>(std::move(name), std::move(aliases), std::move(placeholder), section, commands,
                                      std::move(help));
}

/// Accepts any word.
OwnOption text_field_option() {
  OwnOption option = own("text-field", {"text-column"}, "NAME", files, reads_documents,
                         "field of JSON lines that holds the text; default: input_ids, text or Moves, as the first "
                         "line has it");
  option.expects = "the name of a field";
  option.parse = [](LanguageConfig& config, std::string_view text) {
    if (!text.empty()) config.text_field = text;
    return !text.empty();
  };
  option.print = [](const LanguageConfig& config) -> nlohmann::ordered_json {
    if (config.text_field.empty()) return nullptr;
    return config.text_field;
  };
  return option;
}

OwnOption long_option() {
  return enumeration_option(
      own("long", {}, "WHAT", documents, reads_documents,
          "split: a document longer than --max-length continues as another sample; truncate: its end is left out, "
          "and counted"),
      {{"split", {}}, {"truncate", {}}}, [](auto& config) -> auto& { return config.long_documents; },
      [](std::string_view name) {
        return name == "split" ? data::LongDocuments::split : data::LongDocuments::truncate;
      },
      [](data::LongDocuments kind) { return kind == data::LongDocuments::split ? "split" : "truncate"; });
}

std::vector<OwnOption> own_options() {
  return {
      text_field_option(),
      path_option(
          own("order", {}, "FILE", files, train_command,
              "JSON lines, one step a line: a list of document numbers, from 0; replaces shuffling"),
          [](auto& config) -> auto& { return config.order; }),
      switch_option(
          own("strict", {}, "", files, train_command | eval_command | prepare_command,
              "an empty document is an error, not a counted omission"),
          [](auto& config) -> auto& { return config.strict; }),
      count_option(
          own("max-length", {"max-seq-length", "block-size"}, "N", documents, reads_documents,
              "tokens of a sample at most"),
          {2, 1'048'576}, [](auto& config) -> auto& { return config.max_length; }),
      long_option(),
      switch_option(
          own("no-bos", {}, "", documents, reads_documents | generate_command,
              "begin no document or prompt with the model's BOS token"),
          [](auto& config) -> auto& { return config.no_bos; }),
      switch_option(
          own("no-eos", {}, "", documents, reads_documents, "end no document with the model's EOS token"),
          [](auto& config) -> auto& { return config.no_eos; }),
  };
}

std::vector<OwnOption> generation_options() {
  return {
      count_option(
          own("max-new-tokens", {}, "N", generation, generate_command, "tokens of a continuation at most"),
          {1, 1'000'000'000}, [](auto& config) -> auto& { return config.generation.max_new_tokens; }),
      real_option(
          own("temperature", {}, "X", generation, generate_command,
              "divides the logits before a token is drawn; 0: always the likeliest token"),
          {.smallest = 0.0, .largest = 1e6},
          [](auto& config) -> auto& { return config.generation.sampling.temperature; }),
      count_option(
          own("top-k", {}, "N", generation, generate_command, "draw among the N likeliest tokens"), {1, 1'000'000'000},
          [](auto& config) -> auto& { return config.generation.sampling.top_k; }),
      real_option(
          own("top-p", {}, "X", generation, generate_command,
              "draw among the fewest likeliest tokens whose probabilities add up to X"),
          {.smallest = 0.0, .largest = 1.0, .open_below = true},
          [](auto& config) -> auto& { return config.generation.sampling.top_p; }),
  };
}

}  // namespace

std::vector<Option<RunConfig>> language_modeling_options() {
  std::vector<Option<RunConfig>> all;
  append_options(all, own_options());
  append_options(all, generation_options());
  return all;
}

}  // namespace mylos::tasks
