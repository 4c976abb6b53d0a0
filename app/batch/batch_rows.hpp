#pragma once

#include "core/base/precision.hpp"
#include "nn/recompute.hpp"
#include "parallel/sharding/strategy_kind.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

/// The table of `mylos bench batch`: one step of a constant global batch, split into micro-batches of several sizes.
namespace mylos::app {

/// The sharding strategy, recomputation and micro-batch size of one row.
struct BatchSetting {
  parallel::StrategyKind strategy = parallel::StrategyKind::replicated;
  nn::Recompute recompute = nn::Recompute::none;
  std::size_t micro_batch = 1;  ///< samples at a time on each rank
};

struct BatchRow {
  BatchSetting setting = {};
  std::size_t micro_batches = 0;         ///< per step, on the rank with most
  bool fits = false;                     ///< according to the memory plan; rows that do not fit are not run
  std::size_t planned = 0;               ///< bytes, on the rank that needs most
  std::optional<std::size_t> used = {};  ///< measured bytes, on the rank that used most
  std::optional<double> seconds = {};    ///< per step: predicted, or the median of the measured steps
  std::optional<double> rate = {};       ///< work per second on all ranks together
  std::optional<double> loss = {};       ///< in the first step
  std::optional<double> last_loss = {};  ///< in the last step that ran, after equally many updates in every row
  std::string failure = {};              ///< why the row has no measurements although it fits
};

/// The largest micro-batch that fits in memory according to the plan, regardless of the batch; 0 if none fits.
struct LargestBatch {
  parallel::StrategyKind strategy = parallel::StrategyKind::replicated;
  nn::Recompute recompute = nn::Recompute::none;
  std::size_t samples = 0;
};

struct BatchTable {
  std::string model = {};
  std::string machine = {};  ///< "a100-80", or the name of the device that ran the steps
  std::string rate = {};     ///< source of the compute rate of a prediction; empty if measured
  std::string work = {};     ///< unit of work: "tokens"
  std::string samples = {};  ///< unit of the batch: "sequences"
  std::string precision = {};
  std::size_t batch = 0;  ///< samples per step on all ranks
  std::size_t part = 0;   ///< samples per step on one rank, at most
  std::size_t ranks = 1, nodes = 1;
  std::size_t available = 0;  ///< bytes per rank, including those that the program already uses
  bool is_peak = true;        ///< whether `used` is a peak; otherwise memory resident between steps
  std::vector<BatchRow> rows = {};
  std::vector<LargestBatch> largest = {};
  std::string line = {};  ///< command line of the fastest run; empty if nothing fits

  bool is_measured() const { return rate.empty(); }
};

/// Returns the micro-batch sizes to try: `step` times powers of two below a rank's part of `batch`, then that part,
/// which is rounded up to a multiple of `step`. If `batch` leaves a remainder of one sample, every size is one sample
/// larger, because that sample joins the preceding group.
std::vector<std::size_t> tried_micro_batches(std::size_t batch, std::size_t ranks, std::size_t step = 1);

/// Returns the rows of every mode and recomputation, in this order. For each pair, the micro-batch grows until
/// `try_setting` returns a row that does not fit or has failed.
std::vector<BatchRow> make_rows(const std::vector<parallel::StrategyKind>& strategies,
                                const std::vector<nn::Recompute>& recomputations,
                                const std::vector<std::size_t>& micro_batches,
                                const std::function<BatchRow(const BatchSetting&)>& try_setting);

/// Returns the row with the shortest step. Among rows within 0.1 % of it, returns the one with the largest micro-batch,
/// because predictions do not model that larger matrix products are faster. Returns null if no row has a time.
const BatchRow* fastest_row(const std::vector<BatchRow>& rows);

/// Returns the relative difference between the smallest and the largest loss of the rows: of the first or the last
/// step, whichever differs more. Returns nullopt if fewer than two rows ran.
std::optional<double> loss_difference(const std::vector<BatchRow>& rows);

/// Returns the largest loss_difference that rounding can explain: rows compute the same steps in different orders.
double loss_tolerance(Precision precision);

/// Returns "sharded, --recompute layer, micro-batch 8".
std::string setting_text(const BatchSetting& setting);

}  // namespace mylos::app
