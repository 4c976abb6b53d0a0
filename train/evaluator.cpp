#include "train/evaluator.hpp"

#include "parallel/parameter_mode.hpp"
#include "train/gemm_selection.hpp"
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
  State(Task& evaluated, Precision precision, const GemmConfig& products, const BatchShape& largest)
      : task(evaluated),
        gemm(select_gemm(space, products, products_of_run(evaluated.model(), {}, largest))),
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

Evaluator::Evaluator(Task& task, Precision precision, const GemmConfig& gemm)
    : Evaluator(task, precision, gemm, task.evaluation_shape()) {}
Evaluator::Evaluator(Task& task, Precision precision, const GemmConfig& gemm, const BatchShape& largest)
    : state_(std::make_unique<State>(task, precision, gemm, largest)) {}
Evaluator::~Evaluator() = default;

Metrics Evaluator::evaluate() { return state_->task.evaluate(state_->predictor); }

Predictor& Evaluator::predictor() { return state_->predictor; }

}  // namespace mylos::train
