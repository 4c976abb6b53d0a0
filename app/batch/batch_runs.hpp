#pragma once

#include "app/batch/batch_rows.hpp"
#include "app/options/arguments.hpp"
#include "app/plan/train_line.hpp"
#include "nn/model.hpp"
#include "parallel/launch/launch.hpp"

#include <vector>

/// `mylos bench batch`, and how it computes its rows.
namespace mylos::app {

/// Runs `mylos bench batch`: times one step of a constant batch, with micro-batches that double until memory is full,
/// in several modes and with several recomputations. With --plan, predicts the times instead. Returns 1 if nothing
/// fits, a row failed, or the losses of the rows differ.
int bench_batch(const Arguments& arguments);

/// Returns the modes of --modes. Default: replicated, and also sharded if there are several ranks.
std::vector<parallel::StrategyKind> tried_strategies(const Arguments& arguments, std::size_t ranks);

/// Returns the recomputation of --recompute. Default: none, and also layer if the model supports it.
std::vector<nn::Recompute> tried_recomputations(const Arguments& arguments, const nn::Model& model);

/// Returns `configured` with the setting of a row.
Arguments with_setting(const Arguments& configured, const BatchSetting& setting);

/// Returns the options of `mylos train` for a row's run: those given to bench, and those that the row sets.
std::vector<TrainOption> row_options(const Arguments& arguments, const BatchSetting& setting);

/// Predicts every row for the machine of --gpu. Does not start Kokkos or MPI. Errors: those of `mylos plan`.
BatchTable planned_batches(const Arguments& arguments);

/// Thrown on every rank if a signal arrived while rows ran.
struct InterruptedBatches {
  int signal = 0;
};

/// Runs every row that fits on the ranks of `launch`: one step of the whole batch for each warm-up and each of the
/// --repeats. Rank 0 logs the result of each row. Collective. Errors: those of the model and the data; the failure of a
/// single row is stored in the row.
BatchTable measured_batches(const Arguments& arguments, parallel::Launch& launch);

}  // namespace mylos::app
