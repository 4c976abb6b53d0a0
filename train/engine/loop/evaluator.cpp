#include "train/engine/loop/evaluator.hpp"

#include "core/kernels/scratch.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/models/model_predictor.hpp"
#include "train/engine/selection/gemm_selection.hpp"
#include "train/engine/workload.hpp"

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
        gemm(choose_gemm(*ranks, space, products, [&] { return products_of_run(task.model(), {}, largest); })),
        parameters(space, evaluated, precision),
        arena(planned_arena(evaluated, largest)),
        predictor(*ranks, space, evaluated.model(), parameters.store(), parameters.hooks(), gemm, arena, largest) {
    reserve_scratch(space, task.model().scratch_bytes(largest, ParameterStore::Purpose::inference,
                                                      {.threads = static_cast<std::size_t>(space.concurrency())}));
  }

  Task& task;
  std::unique_ptr<parallel::Communicator> ranks = parallel::make_self_communicator();
  ExecutionSpace space;
  Gemm gemm;
  LoadedParameters parameters;
  Arena arena;
  ModelPredictor predictor;
};

Evaluator::Evaluator(Task& task, Precision precision, const GemmConfig& gemm)
    : Evaluator(task, precision, gemm, Workload(task).evaluation) {}
Evaluator::Evaluator(Task& task, Precision precision, const GemmConfig& gemm, const BatchShape& largest)
    : state_(std::make_unique<State>(task, precision, gemm, largest)) {}
Evaluator::~Evaluator() = default;

Metrics Evaluator::evaluate() { return state_->predictor.evaluate(*state_->task.evaluation()); }

void Evaluator::predict(Evaluation& evaluation) { state_->predictor.predict(evaluation); }

double Evaluator::prediction_seconds() const { return state_->predictor.seconds(); }

}  // namespace mylos::train
