#include "train/engine/loaded_parameters.hpp"

#include "train/engine/initial_parameters.hpp"

namespace mylos::train {

LoadedParameters::LoadedParameters(const ExecutionSpace& space, const Task& task, Precision precision)
    : store_(task.model().table(), precision, ParameterStore::Purpose::inference),
      mode_(parallel::make_single_process_mode(store_)) {
  load_initial_parameters(space, task, std::nullopt, store_, *mode_);
}

}  // namespace mylos::train
