#pragma once

#include "tasks/question_answering/squad_config.hpp"
#include "train/engine/train_config.hpp"

/// Everything a run is told, as run.json records it.
namespace mylos::tasks {

struct RunConfig {
  train::TrainConfig engine;
  SquadConfig squad;
};

}  // namespace mylos::tasks
