#include "tasks/language_modeling/language_modeling_kind.hpp"

#include "core/base/options/option_kinds.hpp"
#include "tasks/interface/adapter_options.hpp"
#include "tasks/language_modeling/language_config.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace mylos::tasks {
namespace {

constexpr std::string_view files = "Model and data", documents = "Documents", generation = "Generation";
constexpr std::string_view reads_documents = "train eval prepare bench plan";

using OwnOption = Option<LanguageConfig>;

OwnOption own(std::string name, std::string placeholder, std::string_view section, std::string_view commands,
              std::string help, OptionTraits traits = {}) {
  return named_option<LanguageConfig>(std::move(name), std::move(placeholder), section, commands, std::move(help),
                                      traits);
}

OwnOption long_option() {
  return enumeration_option(
      own("long", "WHAT", documents, reads_documents,
          "documents longer than --max-length: split (the rest becomes further samples) or truncate (the rest is left "
          "out); default: split, and truncate where the loss counts only a part",
          {.from_run = "eval"}),
      {{"split", {}}, {"truncate", {}}}, MYLOS_FIELD(long_documents),
      [](std::string_view name) {
        return name == "split" ? data::LongDocuments::split : data::LongDocuments::truncate;
      },
      [](std::optional<data::LongDocuments> kind) {
        return !kind ? nlohmann::ordered_json() : kind == data::LongDocuments::split ? "split" : "truncate";
      });
}

OwnOption loss_on_option() {
  static constexpr std::array names = {"assistant", "completion", "all"};
  return enumeration_option(
      own("loss-on", "WHAT", documents, reads_documents,
          "tokens that the loss counts: assistant (what the assistant says in messages), completion (what follows a "
          "prompt, or the assistant says last) or all; default: assistant for messages, completion for prompt and "
          "completion, else all; labels of a row decide themselves",
          {.from_run = "eval"}),
      {{"assistant", {}}, {"completion", {}}, {"all", {}}}, MYLOS_FIELD(loss_on),
      [](std::string_view name) { return static_cast<data::LossOn>(std::ranges::find(names, name) - names.begin()); },
      [](std::optional<data::LossOn> part) {
        return part ? nlohmann::ordered_json(names[static_cast<std::size_t>(*part)]) : nlohmann::ordered_json();
      });
}

std::vector<OwnOption> own_options() {
  return {
      text_option(own("text-field", "NAME", files, reads_documents,
                      "field of JSON lines that contains the text; default: input_ids, messages, prompt, text or "
                      "Moves, whichever the "
                      "first line "
                      "has",
                      {.from_run = "eval"}),
                  "the name of a field", MYLOS_FIELD(text_field)),
      path_option(own("order", "FILE", files, "train",
                      "JSON lines, one step per line: a list of document numbers, from 0; replaces shuffling",
                      {.excludes = "train-fraction"}),
                  MYLOS_FIELD(order)),
      switch_option(own("strict", "", files, "train eval prepare",
                        "fail on an empty document, instead of leaving it out", {.on_resume = OnResume::free}),
                    MYLOS_FIELD(strict)),
      count_option(own("max-length", "N", documents, reads_documents, "largest number of tokens in a sample",
                       {.lays_out = true, .from_run = "eval", .is_shown = true}),
                   {2, 1'048'576}, MYLOS_FIELD(max_length)),
      long_option(),
      loss_on_option(),
      switch_option(own("no-bos", "", documents, "train eval prepare bench plan generate",
                        "do not begin documents and prompts with the model's BOS token", {.from_run = "eval generate"}),
                    MYLOS_FIELD(no_bos)),
      switch_option(own("no-eos", "", documents, reads_documents, "do not end documents with the model's EOS token",
                        {.from_run = "eval"}),
                    MYLOS_FIELD(no_eos)),
  };
}

std::vector<OwnOption> generation_options() {
  return {
      count_option(own("max-new-tokens", "N", generation, "generate", "largest number of tokens in a continuation"),
                   {1, 1'000'000'000}, MYLOS_FIELD(generation.max_new_tokens)),
      real_option(own("temperature", "X", generation, "generate",
                      "sampling temperature, which divides the logits; 0: always take the likeliest token"),
                  {.smallest = 0.0, .largest = unbounded}, MYLOS_FIELD(generation.sampling.temperature)),
      count_option(own("top-k", "N", generation, "generate", "sample from the N likeliest tokens"), {1, 1'000'000'000},
                   MYLOS_FIELD(generation.sampling.top_k)),
      real_option(own("top-p", "X", generation, "generate",
                      "sample from the smallest set of likeliest tokens whose probabilities add up to X"),
                  {.smallest = 0.0, .largest = 1.0, .open_below = true}, MYLOS_FIELD(generation.sampling.top_p)),
  };
}

}  // namespace

std::vector<Option<RunConfig>> language_modeling_options() {
  std::vector<Option<RunConfig>> all;
  append_options(all, own_options());
  append_options(all, generation_options());
  std::ranges::move(adapter_options(), std::back_inserter(all));
  return all;
}

}  // namespace mylos::tasks
