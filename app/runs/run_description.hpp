#pragma once

#include "app/options/arguments.hpp"
#include "parallel/launch/launch.hpp"
#include "tasks/interface/task.hpp"
#include "train/engine/trainer.hpp"
#include "train/monitor/run_banner.hpp"

#include <nlohmann/json.hpp>

/// What a run is, for its banner and for run.json.
namespace mylos::app {

/// `free_memory` in bytes, as it was before the trainer took its own.
train::RunDescription describe_run(const Arguments& arguments, const tasks::Task& task, const train::Trainer& trainer,
                                   parallel::Launch& launch, std::size_t free_memory);

/// The checksum as run.json has it.
std::string checksum_text(const tasks::DataChecksum& data);

/// run.json: every setting, who wrote it, and what was chosen where nothing was said.
nlohmann::ordered_json run_json(const Arguments& arguments, const tasks::Task& task, const train::Trainer& trainer,
                                parallel::Launch& launch);

}  // namespace mylos::app
