#pragma once

#include "tasks/interface/run_config.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

/// What question answering is told beside what every task is. Each field says its unit and an example.
namespace mylos::tasks {

struct SquadConfig {
  std::string dataset;               ///< "squad" or "squad_v2", whose files are looked for; empty = files are named
  std::filesystem::path head;        ///< safetensors with qa_outputs.weight and .bias; empty = the model's own
  std::filesystem::path order;       ///< JSON lines, a list of [question id, window index] a step; empty = shuffled
  std::size_t max_length = 384;      ///< tokens of a window
  std::size_t doc_stride = 128;      ///< tokens that neighbouring windows share
  std::optional<std::string> squad;  ///< "1.1" or "2.0"; empty = judged from the file
  std::size_t n_best = 20;
  std::size_t max_answer_length = 30;  ///< tokens
  double null_threshold = 0.0;         ///< logits
  bool strict = false;                 ///< an answer whose offset does not match its text is an error
  bool exact_labels = false;           ///< label a start in a window's last context token there, not as run_qa does
  std::filesystem::path no_answer_probabilities;  ///< of score: {question id: probability}
  double no_answer_threshold = 1.0;               ///< answers less likely than this to have none are taken as given
};

/// Those of a run of question answering.
inline const SquadConfig& squad_config(const RunConfig& run) { return settings_of<SquadConfig>(run); }
inline SquadConfig& squad_config(RunConfig& run) { return settings_of<SquadConfig>(run); }

}  // namespace mylos::tasks
