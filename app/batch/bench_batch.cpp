#include "app/batch/batch_runs.hpp"

#include "app/batch/batch_output.hpp"
#include "app/bench/bench.hpp"
#include "app/options/options.hpp"
#include "app/options/tool_options.hpp"
#include "app/program/on_ranks.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/launch/launcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace mylos::app {
namespace {

void check_options(const Arguments& arguments) {
  if (arguments.model.empty()) throw UsageError("bench batch needs --model; see mylos bench --help");
  if (arguments.bench->predicts) {
    const std::size_t launched = parallel::launched_ranks(parallel::process_environment);
    if (launched <= 1) return;
    throw UsageError(fmt::format(
        "bench batch --plan runs as one process, but the launcher started {}; start it without the launcher",
        launched));
  }
  if (arguments.data.empty()) {
    throw UsageError("bench batch needs --data to run steps; give it, or predict without data with --plan --gpu KIND");
  }
  if (const Option* option = given_without("bench/batch/steps", arguments)) {
    throw UsageError(fmt::format("--{} is of bench batch --plan; give --plan too, or leave it out", option->name));
  }
}

bool losses_agree(const BatchTable& table, Precision precision) {
  return loss_difference(table.rows).value_or(0.0) <= loss_tolerance(precision);
}

void print_table(const Arguments& arguments, const BatchTable& table) {
  const Precision precision = arguments.run.engine.precision;
  if (arguments.json) {
    nlohmann::ordered_json json = to_json(table);
    json["losses_agree"] = losses_agree(table, precision);
    if (table.is_measured()) json["context"] = bench_context();
    print_indented_json(json);
    return;
  }
  if (table.is_measured()) print_bench_context();
  print(to_text(table));
  const std::string losses = losses_text(table, loss_tolerance(precision));
  if (!losses.empty() || !table.line.empty()) print("\n");
  if (!losses.empty()) print(named_line("losses", losses));
  if (!table.line.empty()) print(named_line("run", table.line));
}

int exit_code(const Arguments& arguments, const BatchTable& table) {
  const bool failed = std::ranges::any_of(table.rows, [](const BatchRow& row) { return !row.failure.empty(); });
  const bool agree = losses_agree(table, arguments.run.engine.precision);
  return failed || !agree || fastest_row(table.rows) == nullptr ? 1 : 0;
}

int measure(const Arguments& arguments) {
  const PromptEnd prompt_end;  // between rows; during a row, its run waits for the end of a step
  parallel::Launch launch{std::chrono::duration<double>(arguments.collective_timeout)};
  return on_ranks(launch, [&] {
    try {
      const BatchTable table = measured_batches(arguments, launch);
      if (launch.world().rank() == 0) print_table(arguments, table);
      return exit_code(arguments, table);
    } catch (const InterruptedBatches& end) {
      if (launch.world().rank() == 0) log_line("ended by a signal before the table was complete; nothing is printed");
      return exit_code_of(end.signal);
    }
  });
}

}  // namespace

int bench_batch(const Arguments& arguments) {
  check_options(arguments);
  if (!arguments.bench->predicts) return measure(arguments);
  const BatchTable table = planned_batches(arguments);
  print_table(arguments, table);
  return exit_code(arguments, table);
}

}  // namespace mylos::app
