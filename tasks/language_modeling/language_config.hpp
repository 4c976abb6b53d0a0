#pragma once

#include "data/text/samples.hpp"
#include "tasks/interface/run_config.hpp"
#include "tasks/language_modeling/sampling.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

/// Settings of language modelling, in addition to those of every task. Each field documents its unit and an example.
namespace mylos::tasks {

/// Settings of `mylos generate`.
struct GenerationConfig {
  std::size_t max_new_tokens = 128;  ///< per continuation
  SamplingConfig sampling;
};

struct LanguageConfig {
  std::size_t max_length = 512;                            ///< tokens per sample
  std::optional<data::LongDocuments> long_documents = {};  ///< nullopt: split; truncate if a part is supervised
  std::optional<data::LossOn> loss_on = {};  ///< nullopt: assistant in messages, completion after a prompt, else all
  std::string text_field = {};               ///< field in JSON lines, e.g. "text"; empty = determined from the file
  bool no_bos = false;                       ///< no BOS before a document
  bool no_eos = false;                       ///< no EOS after a document
  bool strict = false;                       ///< an empty document is an error
  std::string chat_time = {};                ///< time in conversations, "2026-11-30 21:25:29"; empty = the present
  std::filesystem::path order = {};          ///< JSON lines, a list of document numbers per step; empty = shuffled
  GenerationConfig generation = {};
};

/// Returns the settings of a language modelling run.
inline const LanguageConfig& language_config(const RunConfig& run) { return settings_of<LanguageConfig>(run); }
inline LanguageConfig& language_config(RunConfig& run) { return settings_of<LanguageConfig>(run); }

}  // namespace mylos::tasks
