#pragma once

#include "tasks/interface/task_kind.hpp"

namespace mylos::tasks {

/// Returns the kind of task that trains language models on texts.
const TaskKind& language_modeling();

// Its parts, one file each.

/// Returns its options, which set its LanguageConfig.
std::vector<Option<RunConfig>> language_modeling_options();

/// Returns whether `prepare` wrote this file.
bool is_prepared_documents(const std::filesystem::path& file);

/// The command generate: continues texts.
void generate(const CommandCall& call);

}  // namespace mylos::tasks
