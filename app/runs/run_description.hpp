#pragma once

#include "app/options/arguments.hpp"
#include "core/kernels/attention/attention_proof.hpp"
#include "parallel/launch/launch.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/monitor/run_banner.hpp"

#include <nlohmann/json_fwd.hpp>

#include <vector>

/// Describes a run for its banner and for run.json.
namespace mylos::app {

/// `free_memory`: bytes that were free before the trainer allocated its memory.
train::RunDescription describe_run(const Arguments& arguments, const tasks::Task& task, const train::Trainer& trainer,
                                   parallel::Launch& launch, std::size_t free_memory);

/// Returns the checksum as written in run.json.
std::string checksum_text(const tasks::DataChecksum& data);

/// Returns run.json: every setting, the program that writes it, and the values chosen for options not given.
nlohmann::ordered_json run_json(const Arguments& arguments, const tasks::Task& task, const train::Trainer& trainer,
                                parallel::Launch& launch, const std::vector<AttentionProof>& attention);

}  // namespace mylos::app
