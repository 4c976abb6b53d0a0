#include "parallel/sharding/step_calls.hpp"

#include "core/parameter_store.hpp"
#include "parallel/sharding/unit_pass.hpp"

#include <memory>
#include <span>

namespace mylos::parallel {
namespace {

/// A model's use of a sharding strategy, without the model.
class StepRehearsal {
 public:
  StepRehearsal(const ModeSettings& settings, Mesh& mesh, const ParameterTable& table, Precision precision)
      : settings_(settings),
        store_(table, precision, ParameterStore::Purpose::training, store_layout(settings.kind, mesh.shard().size())),
        strategy_(make_sharding_strategy(settings, mesh, store_)) {
    strategy_->sync_parameters(space_, ChangedUnits::all);
  }

  void step() {
    strategy_->begin_step(space_);
    for (std::size_t micro_batch = 1; micro_batch <= settings_.micro_batches; ++micro_batch) {
      strategy_->begin_micro_batch(micro_batch == settings_.micro_batches);
      pass();
    }
    strategy_->finish_gradients(space_);
    strategy_->sum_of_blocks(space_, Vector<double>("mylos::StepRehearsal::blocks", blocks()),
                             Vector<double>("mylos::StepRehearsal::sum", 1));
    strategy_->sync_parameters(space_, ChangedUnits::trained);
  }

 private:
  void pass() {
    pass_over_units(strategy_->hooks(), store_.table(), [&](std::size_t unit) {
      for (const std::size_t read : store_.table().read_by(unit)) begin_gradients(read);
    });
  }

  void begin_gradients(std::size_t unit) {
    for (std::size_t tensor = 0; tensor < store_.table().tensors().size(); ++tensor) {
      if (store_.table().tensor(tensor).unit == unit && store_.trains(tensor)) store_.begins_gradient(tensor, 1);
    }
  }

  /// Returns the number of blocks of this rank's slices.
  std::size_t blocks() const {
    std::size_t count = 0;
    for (const ParameterSlice& slice : strategy_->slices()) {
      count += (slice.end - slice.begin + slice_block - 1) / slice_block;
    }
    return count;
  }

  ModeSettings settings_;
  ExecutionSpace space_;
  ParameterStore store_;
  std::unique_ptr<ShardingStrategy> strategy_;
};

}  // namespace

std::vector<CallRecorder::Members> mesh_groups(std::size_t rank, std::size_t ranks, std::size_t shard_size) {
  CallRecorder::Members shard, replicate;
  for (std::size_t position = 0; position < shard_size; ++position) {
    shard.push_back(rank / shard_size * shard_size + position);
  }
  for (std::size_t member = rank % shard_size; member < ranks; member += shard_size) replicate.push_back(member);
  return {shard, replicate};
}

std::vector<CollectiveCall> calls_of_step(const ModeSettings& settings, std::size_t shard_size, std::size_t rank,
                                          std::size_t ranks, const ParameterTable& table, Precision precision) {
  const std::size_t shards = ranks_that_split(settings.kind, shard_size, ranks);
  CallRecorder recorder(rank, ranks, mesh_groups(rank, ranks, shards));
  Mesh mesh(recorder.world(), shards);
  StepRehearsal rehearsal(settings, mesh, table, precision);
  for (int step = 0; step < 2; ++step) rehearsal.step();  // units are prefetched in the order of earlier steps
  recorder.calls().clear();
  rehearsal.step();
  return recorder.calls();
}

}  // namespace mylos::parallel
