#pragma once

#include "core/parameters.hpp"
#include "parallel/communicator/exchanges/exchanges.hpp"
#include "parallel/sharding/gradient_policy.hpp"
#include "parallel/sharding/unit_exchanges.hpp"
#include "parallel/sharding/value_policy.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace mylos::parallel {

/// Records the decisions of a strategy's policies for a run, in order, instead of carrying them out. The model uses its
/// units in order. Needs neither ranks nor arrays, and does not start Kokkos. Every rank makes the same calls. Short
/// arrays are not joined, as over MPI.
class StrategyRecord : private ValueWork, private GradientWork {
 public:
  struct Act {
    /// A call begins, is waited for with all earlier ones, or ends without its result; or the model acquires a unit.
    enum class Kind { begin, wait, drop, acquire } kind = Kind::begin;
    std::size_t number = 0;    ///< of the call, from 0 on; or of the unit that is acquired
    CollectiveCall call = {};  ///< that begins
    std::size_t unit = 0;      ///< that is exchanged by it
  };

  /// Begins with the exchanges after values have been loaded. `exchanges` must outlive this object.
  explicit StrategyRecord(const UnitExchanges& exchanges);
  StrategyRecord(const StrategyRecord&) = delete;
  StrategyRecord& operator=(const StrategyRecord&) = delete;

  /// The passes of a step, and the sums of its gradients.
  void step(std::size_t micro_batches);
  /// The training pass over a micro-batch.
  void pass(bool last);
  /// The sum of a step's squared gradients.
  void sum_squares();
  /// The exchanges after an update.
  void update() { values_->sync(ChangedUnits::trained); }
  /// A pass without gradients.
  void predict();
  /// A call beside those of the strategy, which is waited for at once.
  void exchange(const CollectiveCall& call) { wait({begin(call)}); }

  const std::vector<Act>& acts() const { return acts_; }

 private:
  /// The numbers of calls that began together.
  using Calls = std::vector<std::size_t>;

  std::size_t begin(const CollectiveCall& call, std::size_t unit = 0);
  void wait(const Calls& calls);
  void acquire(std::size_t unit);

  void gather(std::span<const PlacedUnit> units) override;
  void complete(PlacedUnit unit) override { wait(gathered_[unit.place]); }
  void give_way(PlacedUnit unit) override { wait(gathered_[unit.place]); }
  void discard(PlacedUnit unit) override;
  void sum(std::span<const std::size_t> units, std::size_t place) override;
  void finish_sum(std::size_t place) override { wait(sums_[place]); }
  void sum_slices(std::span<const PlacedUnit> units) override;
  void finish_slices(std::span<const std::size_t> units) override;

  const UnitExchanges& exchanges_;
  std::vector<Act> acts_;
  std::size_t begun_ = 0;
  std::vector<Calls> gathered_, sums_, slices_;  ///< at each place, and of each unit
  std::unique_ptr<ValuePolicy> values_;
  std::unique_ptr<GradientPolicy> gradients_;
};

/// Ranks of the world, in the order of a group.
using Members = std::vector<std::size_t>;

/// Returns the members of a rank's groups, by CollectiveCall::Group: all ranks, and the two groups that Mesh makes.
/// `shard_size` must divide `ranks`.
std::vector<Members> groups_of(std::size_t rank, std::size_t ranks, std::size_t shard_size);

/// Returns the calls that each rank makes in a training step, as for a model of `table`. Includes the gradients' norm
/// and the units that are gathered after the update; the losses and other short values that the engine exchanges in
/// every mode are left out. Groups of one exchange nothing.
std::vector<CollectiveCall> calls_of_step(const UnitExchanges& exchanges);

/// Returns one rank's part of a call with MPI's algorithms. `array` stands for the whole array, and for the rank's part
/// of it; it must outlive the exchange.
std::unique_ptr<Exchange> make_exchange(const CollectiveCall& call, Transport& transport, const RankGroup& group,
                                        const ExchangeRules& rules, std::byte* array);

using UnitList = std::vector<std::size_t>;

/// For each unit, the units whose gathers begin when it is acquired, in order. A unit that is still in memory from
/// before is not gathered again.
struct PassGathers {
  std::vector<UnitList> forward, backward;
};

struct StepGathers {
  UnitList update;    ///< units whose gathers begin after the previous step's update
  PassGathers first;  ///< of the step's first micro-batch
  PassGathers later;  ///< of each later micro-batch
};

/// Returns the gathers in a step of a model that uses its units in order. Earlier steps have used the units in the same
/// order.
StepGathers step_gathers(const ParameterTable& table);

}  // namespace mylos::parallel
