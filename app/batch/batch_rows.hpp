#pragma once

#include "core/numeric.hpp"
#include "nn/recompute.hpp"
#include "parallel/sharding/sharding_strategy.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The table of `mylos bench batch`: one step of a constant batch, cut into micro-batches of several sizes.
namespace mylos::app {

/// How a row's step is computed.
struct BatchSetting {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  nn::Recompute recompute = nn::Recompute::none;
  std::size_t micro_batch = 1;  ///< samples at once on a rank
};

struct BatchRow {
  BatchSetting setting = {};
  std::size_t micro_batches = 0;         ///< of a step on a rank, at most
  bool fits = false;                     ///< by the plan; only then it runs
  std::size_t planned = 0;               ///< bytes of a rank, at most
  std::optional<std::size_t> used = {};  ///< the same, measured: of the rank with most
  std::optional<double> seconds = {};    ///< of a step, predicted or the median of those measured
  std::optional<double> rate = {};       ///< work a second, on all ranks
  std::optional<double> loss = {};       ///< of the first step
  std::optional<double> last_loss = {};  ///< of the last step that ran, after as many updates in every row
  std::string failure = {};              ///< why it has no figures though it fits
};

/// The largest micro-batch that memory holds, by the plan, whatever the batch; 0 = none.
struct LargestBatch {
  parallel::ModeKind mode = parallel::ModeKind::replicated;
  nn::Recompute recompute = nn::Recompute::none;
  std::size_t samples = 0;
};

struct BatchTable {
  std::string model = {};
  std::string machine = {};  ///< "a100-80", or the name of the processor that ran it
  std::string rate = {};     ///< of a prediction, what it rests on; empty = measured
  std::string work = {};     ///< what a step counts: "tokens"
  std::string samples = {};  ///< what a batch counts: "sequences"
  std::string precision = {};
  std::size_t batch = 0;  ///< samples of a step on all ranks
  std::size_t part = 0;   ///< of those, at most on a rank
  std::size_t ranks = 1, nodes = 1;
  std::size_t available = 0;  ///< bytes that a rank may have, with what the program has already
  bool is_peak = true;        ///< `used` is the peak; else what was resident between steps
  std::vector<BatchRow> rows = {};
  std::vector<LargestBatch> largest = {};
  std::string line = {};  ///< that starts the fastest run; empty where none fits

  bool is_measured() const { return rate.empty(); }
};

/// `step` times the powers of two, below a rank's part of `batch`, and that part: parts are whole steps. Where `batch`
/// leaves a single sample over, each size is one larger, because that sample joins the step before.
std::vector<std::size_t> tried_micro_batches(std::size_t batch, std::size_t ranks, std::size_t step = 1);

/// Rows of every mode with every recomputation, in this order: micro-batches grow until `try_setting` gives a row that
/// does not fit or failed.
std::vector<BatchRow> make_rows(const std::vector<parallel::ModeKind>& modes,
                                const std::vector<nn::Recompute>& recomputations,
                                const std::vector<std::size_t>& micro_batches,
                                const std::function<BatchRow(const BatchSetting&)>& try_setting);

/// The row with the shortest step; of those within a thousandth of it the one with the largest micro-batch, because a
/// prediction does not know that larger products are faster. Null where no row has a time.
const BatchRow* fastest_row(const std::vector<BatchRow>& rows);

/// The relative difference between the least and the greatest loss of a step, the first or the last, whichever is
/// larger; empty with fewer than two rows that ran.
std::optional<double> loss_difference(const std::vector<BatchRow>& rows);

/// The largest loss_difference that rounding explains: rows compute the same steps in other orders.
double loss_tolerance(Precision precision);

/// "sharded, --recompute layer, micro-batch 8".
std::string setting_text(const BatchSetting& setting);

}  // namespace mylos::app
