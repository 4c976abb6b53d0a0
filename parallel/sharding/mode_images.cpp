#include "parallel/sharding/mode_images.hpp"

#include "parallel/communicator/image_memory.hpp"
#include "parallel/communicator/parts.hpp"
#include "parallel/sharding/all_reduced_gradients.hpp"
#include "parallel/sharding/exact_sum.hpp"
#include "parallel/sharding/unit_pass.hpp"
#include "parallel/sharding/unit_slots.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

/// Each class replays which images the class of the same purpose takes and gives back, and in which order.
namespace mylos::parallel {
namespace {

constexpr std::size_t no_unit = static_cast<std::size_t>(-1);

/// Operations under way and their images, as MpiCommunicator and PendingResults have them.
class ReplayedOperations {
 public:
  using Operation = std::size_t;

  Operation submit(std::initializer_list<std::size_t> images) {
    for (const std::size_t bytes : images) held_[next_].push_back(memory_.take(bytes));
    return next_++;
  }
  /// Brings back the results of this operation and of all earlier ones.
  void wait(Operation operation) {
    while (!held_.empty() && held_.begin()->first <= operation) drop(held_.begin()->first);
  }
  /// Ends an operation without its result.
  void drop(Operation operation) {
    const auto found = held_.find(operation);
    if (found == held_.end()) return;
    for (const std::size_t size : found->second) memory_.give_back(size);
    held_.erase(found);
  }
  std::size_t bytes() const { return memory_.size(); }

 private:
  ImageBlocks memory_;
  std::map<Operation, std::vector<std::size_t>> held_;  ///< sizes of the images of each operation
  Operation next_ = 0;
};

using Operation = ReplayedOperations::Operation;

/// The settings and operations of a replay, used by all its classes.
struct Replay {
  const ImageSettings& settings;
  const ParameterTable& table;
  std::size_t rank = 0;  ///< among those that split a unit
  ReplayedOperations operations = {};

  std::size_t units() const { return table.units().size(); }
  std::size_t whole(std::size_t unit) const { return table.units()[unit].size; }
  std::size_t part(std::size_t unit) const { return shard_size(whole(unit), settings.shards); }
  /// Elements of this rank's part of a unit, without padding.
  std::size_t own_part(std::size_t unit) const {
    return Parts{whole(unit), part(unit)}.piece(rank, 0, part(unit)).size;
  }
  std::size_t gradient_bytes() const { return settings.mode.bfloat16_gradients ? sizeof(bfloat16) : sizeof(float); }

  /// Submits an operation of a group of ranks. There are no images in a group of one.
  Operation submit(std::size_t ranks, std::initializer_list<std::size_t> images) {
    return operations.submit(ranks == 1 ? std::initializer_list<std::size_t>{} : images);
  }
  Operation gather_values(std::size_t unit) {
    const std::size_t element = bytes_of(settings.precision);
    return submit(settings.shards, {own_part(unit) * element, whole(unit) * element});
  }
  Operation scatter_gradients(std::size_t unit) {
    return submit(settings.shards, {whole(unit) * gradient_bytes(), own_part(unit) * sizeof(float)});
  }
  Operation sum_over_replicas(std::size_t elements) { return submit(settings.replicas, {elements * gradient_bytes()}); }
  /// SlicedStrategy::join_values and sum_of_blocks, with the losses of a step and the squares of its gradients.
  void sum_results() {
    const std::size_t losses = settings.samples * sizeof(double);
    operations.wait(submit(settings.shards, {losses}));
    operations.wait(submit(settings.replicas, {losses}));
    operations.wait(submit(settings.shards, {settings.mode.tree_sums ? ExactSum::bytes : sizeof(double)}));
  }
};

class ReplayedValues {
 public:
  virtual ~ReplayedValues() = default;
  virtual void sync() = 0;
  virtual void acquire(std::size_t unit) = 0;
  virtual void release(std::size_t unit) = 0;
};

/// WholeValuesStrategy.
class ReplayedWholeValues final : public ReplayedValues {
 public:
  explicit ReplayedWholeValues(Replay& replay) : replay_(replay), gathered_(replay.units()) {}

  void sync() override {
    for (std::size_t unit = 0; unit < gathered_.size(); ++unit) {
      if (gathered_[unit] && !replay_.table.units()[unit].trained) continue;
      if (gathered_[unit]) replay_.operations.drop(*gathered_[unit]);
      gathered_[unit] = replay_.gather_values(unit);
    }
  }
  void acquire(std::size_t unit) override {
    for (const std::size_t read : replay_.table.read_by(unit)) replay_.operations.wait(*gathered_[read]);
  }
  void release(std::size_t) override {}

 private:
  Replay& replay_;
  std::vector<std::optional<Operation>> gathered_;
};

/// ParameterGatherer.
class ReplayedGatherer final : public ReplayedValues {
 public:
  explicit ReplayedGatherer(Replay& replay) : replay_(replay), slots_(replay.table), gathered_(slots_.size()) {}

  void sync() override {
    slots_.clear(
        [this](std::size_t slot) {
          for (const Operation own : gathered_[slot].own) replay_.operations.drop(own);
        },
        ChangedUnits::trained);
    prefetch();
  }
  void acquire(std::size_t unit) override {
    const UnitSlots::Choice choice = slots_.acquire(unit, discard_);
    gather(choice.to_gather);
    prefetch();
    for (const std::size_t slot : choice.held) replay_.operations.wait(gathered_[slot].last);
  }
  void release(std::size_t unit) override { slots_.release(unit); }

 private:
  /// For a unit and its rest. A wait for one unit covers all that were gathered with it.
  struct Gathered {
    std::vector<Operation> own;
    Operation last = 0;
  };

  void gather(const std::vector<std::size_t>& slots) {
    for (const std::size_t slot : slots) {
      gathered_[slot].own.clear();
      for (const std::size_t part : replay_.table.parts(slots_.unit_in(slot))) {
        gathered_[slot].own.push_back(replay_.gather_values(part));
      }
    }
    for (const std::size_t slot : slots) gathered_[slot].last = gathered_[slots.back()].own.back();
  }
  void prefetch() { gather(slots_.prefetch(discard_).to_gather); }

  Replay& replay_;
  UnitSlots slots_;
  std::vector<Gathered> gathered_;  ///< by slot
  UnitSlots::Discard discard_ = [this](std::size_t slot) { replay_.operations.wait(gathered_[slot].last); };
};

class ReplayedGradients {
 public:
  virtual ~ReplayedGradients() = default;
  virtual void begin_micro_batch(bool last) = 0;
  /// The unit's gradients are written for the first time in a pass.
  virtual void take(std::size_t unit) = 0;
  virtual void ready(std::size_t unit) = 0;
  virtual void finish() = 0;
};

/// AllReducedGradients.
class ReplayedWholeGradients final : public ReplayedGradients {
 public:
  explicit ReplayedWholeGradients(Replay& replay) : replay_(replay) {}

  void begin_micro_batch(bool last) override { is_last_ = last; }
  void take(std::size_t) override {}
  void ready(std::size_t unit) override {
    if (!is_last_) return;
    // bfloat16 gradients are exchanged from a few buffers, which the results leave first.
    const std::size_t under_way =
        replay_.settings.mode.bfloat16_gradients ? AllReducedGradients::rounded_positions : replay_.units();
    if (sums_.size() >= under_way) replay_.operations.wait(sums_[sums_.size() - under_way]);
    const bool splits = replay_.settings.mode.kind != ModeKind::replicated;
    sums_.push_back(splits ? replay_.scatter_gradients(unit) : replay_.sum_over_replicas(replay_.whole(unit)));
  }
  void finish() override {
    if (!sums_.empty()) replay_.operations.wait(sums_.back());
    sums_.clear();
  }

 private:
  Replay& replay_;
  std::vector<Operation> sums_;  ///< of this step
  bool is_last_ = false;
};

/// ShardedGradients, with its ReplicaSums.
class ReplayedSlicedGradients final : public ReplayedGradients {
 public:
  explicit ReplayedSlicedGradients(Replay& replay)
      : replay_(replay), slots_(units_at_once(replay.table)), replica_sums_(replay.units()) {}

  void begin_micro_batch(bool last) override { is_last_ = last; }
  void take(std::size_t unit) override {
    const auto is_written = [&](const Slot& slot) { return slot.unit == unit && !slot.summing; };
    if (std::ranges::any_of(slots_, is_written)) return;
    const auto free = std::ranges::find(slots_, no_unit, &Slot::unit);
    Slot& slot = free != slots_.end() ? *free : *oldest_sum(nullptr);
    accumulate(slot);
    slot.unit = unit;
  }
  void ready(std::size_t unit) override {
    Slot& slot = *std::ranges::find_if(slots_, [&](const Slot& each) { return each.unit == unit && !each.summing; });
    finish_replicas(std::exchange(slot.lent, no_unit));
    slot.summing = true;
    slot.last = is_last_;
    slot.summed = replay_.scatter_gradients(unit);
    if (is_last_) accumulate_all(&slot);
  }
  void finish() override {
    accumulate_all(nullptr);
    for (std::size_t unit = 0; unit < replica_sums_.size(); ++unit) finish_replicas(unit);
    for (Slot& slot : slots_) slot.lent = no_unit;
  }

 private:
  struct Slot {
    std::size_t unit = no_unit, lent = no_unit;
    bool summing = false, last = false;
    Operation summed = 0;
  };

  Slot* oldest_sum(const Slot* but) {
    Slot* chosen = nullptr;
    for (Slot& slot : slots_) {
      if (&slot != but && slot.summing && (chosen == nullptr || slot.summed < chosen->summed)) chosen = &slot;
    }
    return chosen;
  }
  void accumulate(Slot& slot) {
    if (!slot.summing) return;
    replay_.operations.wait(slot.summed);
    if (slot.last) {
      replica_sums_[slot.unit] = replay_.sum_over_replicas(replay_.part(slot.unit));
      const bool rounds = replay_.settings.mode.bfloat16_gradients && replay_.settings.replicas > 1;
      if (rounds) slot.lent = slot.unit;
    }
    slot.unit = no_unit;
    slot.summing = false;
  }
  void accumulate_all(const Slot* but) {
    while (Slot* const slot = oldest_sum(but)) accumulate(*slot);
  }
  void finish_replicas(std::size_t unit) {
    if (unit == no_unit || !replica_sums_[unit]) return;
    replay_.operations.wait(*std::exchange(replica_sums_[unit], std::nullopt));
  }

  Replay& replay_;
  std::vector<Slot> slots_;
  std::vector<std::optional<Operation>> replica_sums_;
  bool is_last_ = false;
};

/// The beginning of a run: loading, a few steps, and evaluations before some of them. Which blocks are free when a
/// larger one is needed depends on all that came before, so the sizes are those of a run with as many micro-batches.
class ReplayedRun : private UnitHooks {
 public:
  explicit ReplayedRun(Replay& replay) : replay_(replay) {
    const ModeKind kind = replay.settings.mode.kind;
    if (shards_values(kind)) values_ = std::make_unique<ReplayedGatherer>(replay);
    if (!shards_values(kind)) values_ = std::make_unique<ReplayedWholeValues>(replay);
    if (shards_gradients(kind)) gradients_ = std::make_unique<ReplayedSlicedGradients>(replay);
    if (!shards_gradients(kind)) gradients_ = std::make_unique<ReplayedWholeGradients>(replay);
  }

  /// Returns the bytes of all images.
  std::size_t run() {
    load();
    values_->sync();
    constexpr std::size_t steps = 6, between_evaluations = 3;  // later steps find all the blocks that they need
    for (std::size_t step = 0; step < steps; ++step) {
      if (replay_.settings.evaluates && step % between_evaluations == 0) {
        predict();
        predict();
      }
      train();
      replay_.sum_results();
      observe();
      values_->sync();
    }
    return replay_.operations.bytes();
  }

 private:
  /// Passes tensors on to the ranks that hold the same slices.
  void load() {
    if (replay_.settings.replicas == 1 || replay_.settings.loaded_piece == 0) return;
    for (const ParameterTensor& tensor : replay_.table.tensors()) {
      const std::size_t part = replay_.part(tensor.unit), begin = tensor.offset, end = begin + tensor.size;
      const std::size_t rank = replay_.rank;
      const std::size_t first = std::clamp(rank * part, begin, end), last = std::clamp((rank + 1) * part, begin, end);
      for (std::size_t at = first; at < last; at += replay_.settings.loaded_piece) {
        const std::size_t count = std::min(replay_.settings.loaded_piece, last - at);
        replay_.operations.wait(replay_.operations.submit({count * sizeof(float)}));
      }
    }
  }
  void train() {
    constexpr std::size_t most = 8;  // more do not change the figure, and take time
    const std::size_t micro_batches = std::min(replay_.settings.mode.micro_batches, most);
    for (std::size_t micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      gradients_->begin_micro_batch(micro_batch + 1 == micro_batches);
      pass();
    }
    gradients_->finish();
  }
  void pass() {
    pass_over_units(*this, replay_.table, [&](std::size_t unit) {
      for (const std::size_t written : replay_.table.read_by(unit)) {
        if (replay_.table.units()[written].trained) gradients_->take(written);
      }
    });
  }
  void acquire(std::size_t unit) override { values_->acquire(unit); }
  void release(std::size_t unit) override { values_->release(unit); }
  void gradients_ready(std::size_t unit) override { gradients_->ready(unit); }
  void observe() {
    const std::size_t ranks = replay_.settings.shards * replay_.settings.replicas;
    for (std::size_t unit = 0; unit < replay_.units(); ++unit) {
      const std::size_t size = replay_.table.state_size(unit) * replay_.settings.samples;
      if (size > 0) replay_.operations.wait(replay_.submit(ranks, {size * sizeof(float)}));
    }
  }
  void predict() {
    for (std::size_t unit = 0; unit < replay_.table.network_units(); ++unit) {
      values_->acquire(unit);
      values_->release(unit);
    }
  }

  Replay& replay_;
  std::unique_ptr<ReplayedValues> values_;
  std::unique_ptr<ReplayedGradients> gradients_;
};

/// Returns one rank of each class of ranks whose parts have the same sizes in every unit. Parts of a unit are full up
/// to the rank that holds its end, and empty after it.
std::set<std::size_t> ranks_that_differ(const ImageSettings& settings, const ParameterTable& table) {
  const bool loads = settings.replicas > 1 && settings.loaded_piece > 0;  // pieces end differently on each rank
  std::set<std::size_t> ranks = {0};
  for (std::size_t rank = 1; loads && rank < settings.shards; ++rank) ranks.insert(rank);
  for (const ParameterUnit& unit : table.units()) {
    if (unit.size == 0) continue;
    const std::size_t full_parts = unit.size / shard_size(unit.size, settings.shards);
    for (const std::size_t rank : {full_parts, full_parts + 1}) {
      if (rank < settings.shards) ranks.insert(rank);
    }
  }
  return ranks;
}

}  // namespace

std::size_t image_bytes_of_rank(const ImageSettings& settings, const ParameterTable& table, std::size_t rank) {
  Replay replay{.settings = settings, .table = table, .rank = rank};
  return ReplayedRun(replay).run();
}

std::size_t image_bytes(const ImageSettings& settings, const ParameterTable& table) {
  std::size_t most = 0;
  for (const std::size_t rank : ranks_that_differ(settings, table)) {
    most = std::max(most, image_bytes_of_rank(settings, table, rank));
  }
  return most;
}

}  // namespace mylos::parallel
