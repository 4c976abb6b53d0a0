#pragma once

#include "tasks/interface/run_config.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

/// Settings of question answering, in addition to those of every task. Each field documents its unit and an example.
namespace mylos::tasks {

struct SquadConfig {
  std::string dataset = {};          ///< "squad" or "squad_v2", whose files are searched for; empty = files are named
  std::filesystem::path head = {};   ///< safetensors with qa_outputs.weight and .bias; empty = the model's own
  std::filesystem::path order = {};  ///< JSON lines, a list of [question id, window index] per step; empty = shuffled
  std::size_t max_length = 384;      ///< tokens per window
  std::size_t doc_stride = 128;      ///< tokens shared by neighbouring windows
  bool truncate = false;             ///< one window per question, with the beginning of its context
  std::optional<std::string> squad = {};  ///< "1.1" or "2.0"; nullopt = determined from the file
  std::size_t n_best = 20;
  std::size_t max_answer_length = 30;  ///< tokens
  double null_threshold = 0.0;         ///< logits
  bool repair_offsets = false;         ///< move answers that are one or two characters off
  bool answerable_only = false;        ///< train on questions with an answer only
  bool strict = false;                 ///< an answer whose offset does not match its text is an error
  bool exact_labels = false;           ///< label a start at a window's last context token there, unlike run_qa
  std::filesystem::path no_answer_probabilities = {};  ///< for score: {question id: probability}
  double no_answer_threshold = 1.0;  ///< answers with a no-answer probability above this count as empty
};

/// Returns the settings of a question answering run.
inline const SquadConfig& squad_config(const RunConfig& run) { return settings_of<SquadConfig>(run); }
inline SquadConfig& squad_config(RunConfig& run) { return settings_of<SquadConfig>(run); }

}  // namespace mylos::tasks
