#pragma once

#include "core/kernels/attention.hpp"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

/// What the SQuAD task is told. Each field says its unit and an example.
namespace mylos::tasks {

struct SquadConfig {
  std::filesystem::path model;   ///< resolved Hugging Face directory
  std::filesystem::path train;   ///< questions.json or features.h5; empty = no training
  std::filesystem::path dev;     ///< the same for evaluation; empty = none
  std::filesystem::path head;    ///< safetensors with qa_outputs.weight and .bias; empty = the model's own
  std::filesystem::path order;   ///< JSON lines, a list of [question id, window index] a step; empty = shuffled
  std::size_t batch = 12;        ///< sequences a step over all ranks
  std::size_t max_length = 384;  ///< tokens of a window
  std::size_t doc_stride = 128;  ///< tokens that neighbouring windows share
  std::optional<std::size_t> train_limit, dev_limit;  ///< the first N questions
  std::optional<std::string> squad;                   ///< "1.1" or "2.0"; empty = judged from the file
  std::optional<double> dropout;                      ///< probability; empty = the model's
  AttentionKernel attention = AttentionKernel::portable;
  std::size_t n_best = 20;
  std::size_t max_answer_length = 30;  ///< tokens
  double null_threshold = 0.0;         ///< logits
  bool strict = false;                 ///< an answer whose offset does not match its text is an error
  bool exact_labels = false;           ///< label a start in a window's last context token there, not as run_qa does
};

}  // namespace mylos::tasks
