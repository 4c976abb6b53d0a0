#include "train/planning/step_time.hpp"

#include <algorithm>

namespace mylos::train {
namespace {

using parallel::ModeKind;

/// Two clocks of a rank: one for computing, one for its collectives, which run one at a time.
class Clocks {
 public:
  /// `hides`: collectives run beside the computation and slow it down by the fraction `contention`.
  Clocks(bool hides, double contention) : hides_(hides), left_(1.0 - contention) {}

  /// Advances by a computation that takes `seconds` without contention.
  void compute(double seconds) {
    const double beside = std::clamp(free_ - now_, 0.0, seconds / left_);
    now_ += seconds + beside * (1.0 - left_);
  }
  /// Starts a collective now, or at the end of the previous one; returns its end.
  double exchange(double seconds) {
    free_ = std::max(free_, now_) + seconds;
    sum_ += seconds;
    if (!hides_) wait_for_all();
    return free_;
  }
  void wait_until(double time) { now_ = std::max(now_, time); }
  void wait_for_all() { wait_until(free_); }

  double now() const { return now_; }
  double exchanged() const { return sum_; }

 private:
  bool hides_;
  double left_;
  double now_ = 0.0, free_ = 0.0, sum_ = 0.0;
};

double part_of_others(std::size_t ranks) { return static_cast<double>(ranks - 1) / static_cast<double>(ranks); }

class Step {
 public:
  Step(const StepLayout& layout, const Links& links, std::span<const UnitWork> units)
      : layout_(layout),
        links_(links),
        units_(units),
        clocks_(!links.copies || layout.ranks > links.of_node, links.contention) {}

  StepTime run(double optimizer) {
    for (std::size_t i = 0; i < layout_.micro_batches; ++i) {
      const bool last = i + 1 == layout_.micro_batches;
      forward(i == 0);
      backward(last);
    }
    clocks_.wait_for_all();
    StepTime time{.optimizer = optimizer, .exchange = clocks_.exchanged(), .sent = sent_};
    for (const UnitWork& unit : units_) time.compute += (unit.forward + unit.backward);
    time.compute *= static_cast<double>(layout_.micro_batches);
    const double waited = clocks_.now() - time.compute;
    constexpr double rounding = 1e-9;  // tolerance for sums in two orders
    time.exposed = waited > rounding * time.compute ? waited : 0.0;
    return time;
  }

 private:
  bool splits_values() const { return parallel::shards_values(layout_.mode); }
  /// Starts a gather; returns its end.
  double gather(double bytes) {
    sent_ += part_of_others(layout_.shards) * bytes;
    return clocks_.exchange(gather_seconds(links_, layout_.shards, bytes));
  }
  double all_reduce(const Links& links, std::size_t ranks, double bytes, double own) {
    sent_ += 2.0 * part_of_others(ranks) * own;
    return clocks_.exchange(all_reduce_seconds(links, ranks, bytes));
  }
  /// Sums a unit's gradients over all ranks, or over the group.
  void reduce(const UnitWork& unit) {
    if (layout_.mode == ModeKind::replicated) {
      all_reduce(links_, layout_.ranks, unit.gradients, unit.gradients);
    } else {
      gather(unit.gradients);
    }
  }
  /// Sums this rank's slice of a unit over the groups. Ranks with the same position in every node share the links.
  void sum_replicas(const UnitWork& unit) {
    const std::size_t groups = layout_.mode == ModeKind::hybrid ? layout_.ranks / layout_.shards : 1;
    const Links between{.local = links_.local, .of_node = 1, .network = links_.network};
    all_reduce(between, groups, unit.gradients, unit.gradients / static_cast<double>(layout_.shards));
  }
  bool reduces(bool last) const {
    return last || (layout_.mode != ModeKind::replicated && layout_.mode != ModeKind::sharded_optimizer);
  }

  /// Parameters are gathered one unit ahead; if they stay unsharded, once per step, after the update of the previous
  /// step.
  void forward(bool first) {
    const bool gathers = splits_values() || (first && layout_.mode != ModeKind::replicated);
    std::vector<double> there(units_.size(), 0.0);
    if (gathers) there[0] = gather(units_[0].values);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      clocks_.wait_until(there[u]);
      if (gathers && u + 1 < units_.size()) there[u + 1] = gather(units_[u + 1].values);
      clocks_.compute(units_[u].forward);
    }
  }

  /// The parameters of the last two units are still there from the forward pass. In the last micro-batch, the sum of a
  /// unit's slice over groups starts when the gradients of the next unit are complete.
  void backward(bool last) {
    const std::size_t count = units_.size();
    std::vector<double> there(count, 0.0);
    for (std::size_t i = count; i-- > 0;) {
      clocks_.wait_until(there[i]);
      if (splits_values() && i > 0 && i + 1 < count) there[i - 1] = gather(units_[i - 1].values);
      clocks_.compute(units_[i].backward);
      if (reduces(last)) reduce(units_[i]);
      if (last && i + 1 < count) sum_replicas(units_[i + 1]);
    }
    if (last) sum_replicas(units_[0]);
  }

  const StepLayout& layout_;
  const Links& links_;
  std::span<const UnitWork> units_;
  Clocks clocks_;
  double sent_ = 0.0;
};

/// Returns the seconds of `rounds` transfers of (n - 1)/n of the array.
double ring_seconds(const Links& links, std::size_t ranks, double bytes, double rounds) {
  if (ranks < 2) return 0.0;
  constexpr double local_latency = 2e-6;  // per message within a node
  const std::size_t inside = std::min(ranks, std::max<std::size_t>(links.of_node, 1));
  const std::size_t nodes = (ranks + inside - 1) / inside;
  double rate = links.local, latency = local_latency * static_cast<double>(inside - 1);
  if (nodes > 1) {
    rate = std::min(rate, links.network.bandwidth);
    latency += links.network.latency * static_cast<double>(nodes - 1);
  }
  return rounds * (part_of_others(ranks) * bytes / rate + latency);
}

}  // namespace

double gather_seconds(const Links& links, std::size_t ranks, double bytes) {
  return ring_seconds(links, ranks, bytes, 1.0);
}

double all_reduce_seconds(const Links& links, std::size_t ranks, double bytes) {
  return ring_seconds(links, ranks, bytes, 2.0);
}

StepTime step_time(const StepLayout& layout, const Links& links, std::span<const UnitWork> units, double optimizer) {
  if (units.empty()) return {.optimizer = optimizer};
  return Step(layout, links, units).run(optimizer);
}

}  // namespace mylos::train
