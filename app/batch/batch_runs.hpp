#pragma once

#include "app/batch/batch_rows.hpp"
#include "app/options/arguments.hpp"
#include "app/plan/train_line.hpp"
#include "nn/model.hpp"
#include "parallel/launch/launch.hpp"

#include <vector>

/// Where the rows of `mylos bench batch` come from.
namespace mylos::app {

/// The modes of --modes; by default replicated, and with several ranks sharded too.
std::vector<parallel::ModeKind> tried_modes(const Arguments& arguments, std::size_t ranks);

/// The recomputation of --recompute; by default none, and layer where the model can.
std::vector<nn::Recompute> tried_recomputations(const Arguments& arguments, const nn::Model& model);

/// `told` with a row's setting.
Arguments with_setting(const Arguments& told, const BatchSetting& setting);

/// The options of train for a row's run: those that bench was given, and what the row settles.
std::vector<TrainOption> row_options(const Arguments& arguments, const BatchSetting& setting);

/// Every row predicted for the machine of --gpu. Starts neither Kokkos nor MPI. Errors: those of plan.
BatchTable planned_batches(const Arguments& arguments);

/// Thrown on every rank where a signal came while rows ran.
struct InterruptedBatches {
  int signal = 0;
};

/// Every row that fits, run on the ranks of `launch`: a step of the whole batch for each of the warm-ups and --repeats.
/// Rank 0 says what each row gave. Collective. Errors: those of the model and the data; what only a row cannot is in
/// the row.
BatchTable measured_batches(const Arguments& arguments, parallel::Launch& launch);

}  // namespace mylos::app
