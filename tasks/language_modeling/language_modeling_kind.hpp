#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind of task that trains language models on texts.
const TaskKind& language_modeling();

// Its parts, one file each.

/// Returns its options, which set its LanguageConfig.
std::vector<Option<RunConfig>> language_modeling_options();

/// Cuts the documents of `file` with the tokenizer of `run.task.model`, and writes the samples to `output`: as a sample
/// file if its name ends in .h5, else as one JSON object per line. `notice` gets the counts. Errors: std::runtime_error
/// naming the file.
void prepare_documents(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
                       const Notice& notice);
/// Returns whether prepare_documents wrote this file.
bool is_prepared_documents(const std::filesystem::path& file);

/// The command generate: continues texts.
void generate(const CommandCall& call);

}  // namespace mylos::tasks
