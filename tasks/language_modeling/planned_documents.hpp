#pragma once

#include "core/base/notice.hpp"
#include "core/base/option.hpp"
#include "data/huggingface/llama_config.hpp"
#include "tasks/interface/task_kind.hpp"
#include "tasks/language_modeling/gpt_shapes.hpp"

#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Fits --max-length to the model in `run.task.model`, which the user called `name`: the default is made to fit.
/// Errors: UsageError where a length that was given is longer than the model has positions.
void fit_samples(RunConfig& run, const std::string& name, const OptionSources& sources, const Notice& notice);

/// The configuration of the model called `name`: one that is known by its sizes, or a directory or name that train
/// takes. Errors: std::runtime_error where there is no such model.
data::LlamaConfig find_llama_sizes(const std::string& name);

/// The GPT-like model of that name; null where `name` is a directory or no such name.
const NamedGpt* find_known_gpt(const std::string& name);

/// A run of the model called `name` on the documents in `file`, or, where that is empty, on a fixed count of full
/// samples. A model that is known by its sizes needs no directory but for the tokenizer that cuts documents. Errors:
/// std::runtime_error where a file or directory is not there; UsageError of fit_samples, and for documents for a
/// model that only plans know.
PlannedRun plan_documents(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                          const OptionSources& sources, const Notice& notice);

}  // namespace mylos::tasks
