#include "train/evaluator.hpp"

#include "parallel/parameter_mode.hpp"
#include "train/initial_parameters.hpp"
#include "train/model_predictor.hpp"

namespace mylos::train {
namespace {

Arena planned_arena(const Task& task, const BatchShape& largest) {
  Arena measured;
  task.model().plan(measured, largest, ParameterStore::Purpose::inference, nn::Recompute::none);
  return {"mylos::activations", measured.peak()};
}

}  // namespace

struct Evaluator::State {
  State(Task& evaluated, Precision precision, const std::string& provider, const BatchShape& largest)
      : task(evaluated),
        gemm(provider),
        store(evaluated.model().table(), precision, ParameterStore::Purpose::inference),
        mode(parallel::make_single_process_mode(store)),
        arena(planned_arena(evaluated, largest)),
        predictor(space, evaluated.model(), store, mode->schedule(), gemm, arena, largest.samples) {
    load_initial_parameters(space, task, std::nullopt, store, *mode);
  }

  Task& task;
  ExecutionSpace space;
  Gemm gemm;
  ParameterStore store;
  std::unique_ptr<parallel::ParameterMode> mode;
  Arena arena;
  ModelPredictor predictor;
};

Evaluator::Evaluator(Task& task, Precision precision, const std::string& gemm)
    : Evaluator(task, precision, gemm, task.evaluation_shape()) {}
Evaluator::Evaluator(Task& task, Precision precision, const std::string& gemm, const BatchShape& largest)
    : state_(std::make_unique<State>(task, precision, gemm, largest)) {}
Evaluator::~Evaluator() = default;

Metrics Evaluator::evaluate() { return state_->task.evaluate(state_->predictor); }

Predictor& Evaluator::predictor() { return state_->predictor; }

}  // namespace mylos::train
