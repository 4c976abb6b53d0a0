#pragma once

#include "train/squad_config.hpp"
#include "train/train_config.hpp"

/// Everything a run is told, as run.json records it.
namespace mylos::train {

struct RunConfig {
  TrainConfig engine;
  SquadConfig squad;
};

}  // namespace mylos::train
