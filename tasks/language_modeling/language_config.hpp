#pragma once

#include "data/text/samples.hpp"
#include "tasks/interface/run_config.hpp"
#include "tasks/language_modeling/sampling.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

/// What language modelling is told beside what every task is. Each field says its unit and an example.
namespace mylos::tasks {

/// What generate is told.
struct GenerationConfig {
  std::size_t max_new_tokens = 128;  ///< of a continuation
  SamplingConfig sampling;
};

struct LanguageConfig {
  std::size_t max_length = 512;  ///< tokens of a sample
  data::LongDocuments long_documents = data::LongDocuments::split;
  std::string text_field;       ///< of JSON lines, "text"; empty = as the file says
  bool no_bos = false;          ///< no BOS before a document
  bool no_eos = false;          ///< no EOS after it
  bool strict = false;          ///< an empty document is an error
  std::filesystem::path order;  ///< JSON lines, a list of document numbers a step; empty = shuffled
  GenerationConfig generation;
};

/// That of a run of language modelling.
inline const LanguageConfig& language_config(const RunConfig& run) { return settings_of<LanguageConfig>(run); }
inline LanguageConfig& language_config(RunConfig& run) { return settings_of<LanguageConfig>(run); }

}  // namespace mylos::tasks
