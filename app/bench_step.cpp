#include "app/bench.hpp"
#include "app/compute.hpp"
#include "app/gemm_timing.hpp"
#include "app/model_argument.hpp"
#include "app/standard_output.hpp"
#include "app/usage_error.hpp"
#include "core/error.hpp"
#include "train/squad_task.hpp"
#include "train/trainer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <string>

namespace mylos::app {
namespace {

constexpr std::size_t warm_ups = 2;

class StepRecorder final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { steps.push_back(report); }
  std::vector<train::StepReport> steps;
};

std::vector<train::StepReport> run_steps(train::TrainConfig config, train::SquadTask& task, std::size_t steps) {
  config.steps = steps;
  StepRecorder recorder;
  train::Trainer(config, task).run({&recorder});
  return recorder.steps;
}

/// Each of the runs below loads the model, and says the same of it.
void log_once(const std::string& line) {
  static std::set<std::string> said;
  if (said.insert(line).second) log_line(line);
}

/// One sequence at a time must give the loss of the whole batch, to rounding.
void validate(const Arguments& arguments, train::SquadTask& task) {
  train::TrainConfig config = arguments.run.engine;
  const double whole = run_steps(config, task, 1).front().loss;
  config.micro_batch = 1;
  const double single = run_steps(config, task, 1).front().loss;
  const double tolerance = config.precision == Precision::float32 ? 1e-4 : 2e-2;
  ensure(std::abs(whole - single) <= tolerance * std::abs(single),
         fmt::format("bench step: the batch's loss is {}, its sequences' one at a time {}", whole, single));
}

/// Operations of the step that made `report`, counted over its batch.
double flops_of(const train::SquadTask& task, const train::StepReport& report) {
  return task.model().training_flops({.samples = report.sequences, .rows = report.tokens, .longest = 0});
}

struct Rates {
  double tokens = 0.0;  ///< a second
  double flops = 0.0;
  double gemm_flops = 0.0;  ///< of the products alone, timed apart
};

Rates measure(const Arguments& arguments, train::SquadTask& task) {
  std::vector<double> tokens, flops, rows;
  const std::vector<train::StepReport> steps = run_steps(arguments.run.engine, task, warm_ups + arguments.repeats);
  for (std::size_t i = warm_ups; i < steps.size(); ++i) {
    tokens.push_back(steps[i].tokens_per_second());
    flops.push_back(flops_of(task, steps[i]) / steps[i].seconds);
    rows.push_back(static_cast<double>(steps[i].tokens));
  }
  const auto batch_tokens = static_cast<std::size_t>(median(rows));
  const std::vector<Product> products =
      layer_products(batch_tokens, task.bert().hidden_size, task.bert().intermediate_size);
  return {
      .tokens = median(tokens),
      .flops = median(flops),
      .gemm_flops = layer_rate(arguments.run.engine.gemm, products, arguments.run.engine.precision, arguments.repeats)};
}

void print_rates(const Arguments& arguments, const Rates& rates) {
  const train::TrainConfig& engine = arguments.run.engine;
  const double share = rates.flops / rates.gemm_flops;
  if (arguments.json) {
    const nlohmann::ordered_json result = {{"context", bench_context()},
                                           {"model", arguments.model},
                                           {"batch", arguments.run.squad.batch},
                                           {"precision", to_string(engine.precision)},
                                           {"provider", engine.gemm},
                                           {"tokens_per_second", rates.tokens},
                                           {"gflops", 1e-9 * rates.flops},
                                           {"gemm_gflops", 1e-9 * rates.gemm_flops},
                                           {"share_of_gemm", share}};
    print(result.dump(2) + "\n");
    return;
  }
  print_bench_context();
  print(fmt::format("step: {}, batch {}, {}, {}; the median of {}\n", arguments.model, arguments.run.squad.batch,
                    to_string(engine.precision), engine.gemm, arguments.repeats));
  print(fmt::format(
      "{:.0f} tokens/s, {:.1f} GFLOP/s, {:.0f} % of the {:.1f} GFLOP/s that the layers' products reach alone\n",
      rates.tokens, 1e-9 * rates.flops, 100.0 * share, 1e-9 * rates.gemm_flops));
}

}  // namespace

int bench_step(const Arguments& told) {
  Arguments arguments = told;
  if (arguments.model.empty()) throw UsageError("bench step needs --model; see mylos bench --help");
  if (arguments.data.empty()) throw UsageError("bench step needs --data; see mylos bench --help");
  resolve_model_argument(arguments);
  arguments.run.squad.train = arguments.data;
  const train::TrainConfig& engine = arguments.run.engine;
  train::SquadTask task(arguments.run.squad, engine.precision, engine.seed, log_once);
  const ComputeScope compute;
  validate(arguments, task);
  print_rates(arguments, measure(arguments, task));
  return 0;
}

}  // namespace mylos::app
