#include "app/bench/bench.hpp"
#include "app/bench/calibration.hpp"
#include "app/bench/gemm_timing.hpp"
#include "app/bench/memory_bandwidth.hpp"
#include "app/bench/step_breakdown.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/compute.hpp"
#include "app/program/model_argument.hpp"
#include "core/base/error.hpp"
#include "core/base/median.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "core/kernels/products/winograd_sizes.hpp"
#include "parallel/communicator/communicator.hpp"
#include "tasks/interface/attention_choice.hpp"
#include "train/engine/loop/trainer.hpp"
#include "train/planning/run_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>

namespace mylos::app {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// Timings of each product and provider after each step.
constexpr std::size_t timings_a_step = 2;

class StepRecorder final : public train::Reporter {
 public:
  void step(const train::StepReport& report) override { steps.push_back(report); }
  std::vector<train::StepReport> steps;
};

/// Logs each line only once, because every run below loads the model and logs the same lines.
void log_once(const std::string& line) {
  static std::set<std::string> said;
  if (said.insert(line).second) log_line(line);
}

double first_loss(train::TrainConfig config, tasks::Task& task) {
  config.steps = 1;
  StepRecorder recorder;
  train::Trainer(config, task).run({&recorder});
  return recorder.steps.front().loss;
}

/// Checks that one sequence at a time gives the loss of the whole batch, up to rounding.
void validate(const train::TrainConfig& config, tasks::Task& task) {
  train::TrainConfig one_by_one = config;
  one_by_one.micro_batch = 1;
  one_by_one.micro_tokens = 0;
  const double whole = first_loss(config, task), single = first_loss(one_by_one, task);
  const double tolerance = config.precision == Precision::float32 ? 1e-4 : 2e-2;
  ensure(std::abs(whole - single) <= tolerance * std::abs(single),
         fmt::format("bench step: the loss of the batch is {}, but {} if its sequences are computed one at a time",
                     whole, single));
}

/// Returns the number of micro-batches of the step that made `report`.
std::size_t micro_batches(const tasks::Task& task, const train::StepReport& report,
                          const train::MicroBatchLimit& limit) {
  const std::vector<std::size_t> samples = task.global_batch(report.step - 1);
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < samples.size(); ++count) {
    begin = train::micro_batch_end(task, samples, begin, limit);
  }
  return count;
}

/// Times steps and, after each, measures the ceilings that bound them. With a breakdown, every other step is profiled
/// instead, so that profiling does not affect the figures of whole steps.
class StepBench final : public train::Reporter {
 public:
  StepBench(const Arguments& arguments, tasks::Task& task)
      : arguments_(arguments), task_(task), timer_(timed_providers(arguments)) {}

  void run() {
    train::TrainConfig config = arguments_.run.engine;
    steps_ = bench_warm_ups + arguments_.repeats * (arguments_.bench->breakdown ? 2 : 1);
    config.steps = steps_;
    config.waits_for_each_step = true;
    train::Trainer trainer(config, task_);
    limit_ = trainer.plan().limit;
    gemm_ = describe(trainer.gemm());
    trainer.run({this});
    // Only now, because reading a profile waits for the device, and the next step would begin with an idle one.
    for (const RecordedStep& step : profiles_) profiled_.push_back({step.profile->profile(), step.seconds});
  }

  void step(const train::StepReport& report) override {
    if (is_profiled_) {
      profiles_.back().profile->stop();
      profiles_.back().seconds = report.seconds;
      is_profiled_ = false;
      return;
    }
    if (report.step > bench_warm_ups) {
      plain_.push_back(report);
      measure_ceilings(report);
    }
    // Do not profile after the last step: each step prepares the batch of the next one.
    if (arguments_.bench->breakdown && report.step >= bench_warm_ups && report.step < steps_) {
      profiles_.push_back({std::make_unique<StepProfile>()});
      is_profiled_ = true;
    }
  }

  /// Returns the measurements that plans need.
  Calibration calibration() const;
  void print() const { arguments_.json ? print_json() : print_text(); }

 private:
  /// A step whose profile has not been read.
  struct RecordedStep {
    std::unique_ptr<StepProfile> profile;
    double seconds = 0.0;
  };

  Precision precision() const { return arguments_.run.engine.precision; }
  void measure_ceilings(const train::StepReport& report);
  /// Returns the median over the steps that were not profiled.
  template <class Figure>
  double typical(const Figure& figure) const;
  double work_per_second() const;
  double flops() const;
  Ceilings ceilings() const;
  Breakdown breakdown() const { return make_breakdown(training_products(task_.model(), 1), profiled_, ceilings()); }
  OrderedJson product_json(const ProductRates& rates) const;
  void print_json() const;
  void print_text() const;

  const Arguments& arguments_;
  tasks::Task& task_;
  ProductTimer timer_;
  std::size_t steps_ = 0;
  train::MicroBatchLimit limit_;
  std::string gemm_;  ///< the providers of the step's products
  std::vector<ProductRates> products_;
  MemoryBandwidth bandwidth_;
  std::vector<double> bandwidths_;
  std::vector<train::StepReport> plain_;
  std::vector<ProfiledStep> profiled_;
  std::vector<RecordedStep> profiles_;
  bool is_profiled_ = false;  ///< the last profile is of the step that runs
};

/// Times each product of the model with every provider, over the tokens of one micro-batch of this step.
void StepBench::measure_ceilings(const train::StepReport& report) {
  // Measured once on a device: it is not shared, so its rates do not change between steps as those of a host do.
  if (!runs_on_host && !bandwidths_.empty()) return;
  const std::size_t tokens = report.tokens / micro_batches(task_, report, limit_);
  const std::vector<GemmProduct> products = training_products(task_.model(), tokens);
  products_.resize(products.size());
  for (std::size_t i = 0; i < products.size(); ++i) timer_.time(products[i], timings_a_step, products_[i]);
  bandwidths_.push_back(bandwidth_.measure());
}

template <class Figure>
double StepBench::typical(const Figure& figure) const {
  std::vector<double> figures;
  for (const train::StepReport& step : plain_) figures.push_back(figure(step));
  return median(figures);
}

double StepBench::work_per_second() const {
  return typical([&](const train::StepReport& step) { return task_.work().count(step.tokens_per_second()); });
}

double StepBench::flops() const {
  return typical([](const train::StepReport& step) { return step.flops / step.seconds; });
}

/// Excludes the optimizer, estimated from the bytes it moves, because its time does not grow with the batch.
Calibration StepBench::calibration() const {
  const double bandwidth = median(bandwidths_);
  const double optimizer = train::optimizer_bytes(arguments_.run.engine.optimizer.kind()) *
                           static_cast<double>(task_.model().table().trained_size()) / bandwidth;
  const double rate = typical([&](const train::StepReport& step) {
    return step.flops / std::max(step.seconds - optimizer, 0.5 * step.seconds);
  });
  return {.device = device_name(),
          .host = runs_on_host,
          .threads = default_threads(),
          .precision = precision(),
          .model = model_size(task_.model()),
          .flops = rate,
          .bandwidth = bandwidth,
          .products = ceiling_rate(products_)};
}

Ceilings StepBench::ceilings() const {
  Ceilings ceilings{.bandwidth = median(bandwidths_)};
  for (const ProductRates& product : products_) {
    if (has_winograd(product.product)) continue;  // its rate may count operations that are not done
    ceilings.flops = std::max(ceilings.flops, product.rate(product.fastest()));
  }
  return ceilings;
}

OrderedJson StepBench::product_json(const ProductRates& rates) const {
  const std::size_t fastest = rates.fastest();
  OrderedJson gflops;
  for (std::size_t i = 0; i < timer_.providers().size(); ++i) gflops[timer_.providers()[i]] = 1e-9 * rates.rate(i);
  return {{"product", rates.product.name},
          {"calls", static_cast<double>(rates.product.count)},
          {"gflops", gflops},
          {"fastest", timer_.providers()[fastest]}};
}

void StepBench::print_json() const {
  OrderedJson products = OrderedJson::array();
  for (const ProductRates& rates : products_) products.push_back(product_json(rates));
  const double ceiling = ceiling_rate(products_);
  OrderedJson result = {{"context", bench_context()},
                        {"model", arguments_.model},
                        {"batch", arguments_.run.task.batch},
                        {"precision", to_string(precision())},
                        {"provider", gemm_},
                        {task_.work().name, typical([&](const auto& step) {
                           return task_.work().count(static_cast<double>(step.tokens));
                         })},
                        {"seconds", typical([](const auto& step) { return step.seconds; })},
                        {train::rate_key(task_.work().name), work_per_second()},
                        {"gflops", 1e-9 * flops()},
                        {"gemm_gflops", 1e-9 * ceiling},
                        {"share_of_gemm", flops() / ceiling},
                        {"products", products},
                        {"calibration", to_json(calibration())}};
  if (arguments_.bench->breakdown) {
    result[breakdown_key] = to_json(breakdown(), ceilings());
  }
  print_indented_json(result);
}

void StepBench::print_text() const {
  print_bench_context();
  mylos::print(fmt::format("step: {}, batch {}, {}, {}; the median of {}\n", arguments_.model,
                           arguments_.run.task.batch, to_string(precision()), gemm_, arguments_.repeats));
  const double ceiling = ceiling_rate(products_);
  const std::string share = products_.empty()
                                ? ""
                                : fmt::format(
                                      ": {:.1f} % of the {:.1f} GFLOP/s that the model's products reach alone, each by "
                                      "its fastest provider",
                                      100.0 * flops() / ceiling, 1e-9 * ceiling);
  mylos::print(
      fmt::format("{:.0f} {}/s, {:.1f} GFLOP/s{}\n", work_per_second(), task_.work().name, 1e-9 * flops(), share));
  if (arguments_.bench->breakdown) {
    mylos::print(to_text(breakdown(), ceilings()));
  }
}

}  // namespace

int bench_step(const Arguments& configured) {
  Arguments arguments = configured;
  if (arguments.model.empty()) throw UsageError("bench step needs --model; see mylos bench --help");
  if (arguments.data.empty()) throw UsageError("bench step needs --data; see mylos bench --help");
  resolve_model_argument(FileReader(), arguments);
  arguments.run.task.train = arguments.data;
  const train::TrainConfig& engine = arguments.run.engine;
  const ComputeScope compute;  // before the task, whose model depends on the device
  const std::unique_ptr<tasks::Task> task = make_with_data(*arguments.task, arguments.run, log_once);
  check_precision(engine.precision, engine.gemm.tf32);
  const std::unique_ptr<parallel::Communicator> self = parallel::make_self_communicator();
  choose_attention(*self, arguments.run, *task, log_once);
  validate(engine, *task);
  StepBench bench(arguments, *task);
  bench.run();
  save_calibration(bench.calibration());
  bench.print();
  return 0;
}

}  // namespace mylos::app
