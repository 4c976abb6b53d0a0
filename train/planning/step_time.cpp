#include "train/planning/step_time.hpp"

#include "core/base/error.hpp"
#include "parallel/planning/strategy_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace mylos::train {
namespace {

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

double part_of_others(std::size_t count) { return static_cast<double>(count - 1) / static_cast<double>(count); }

/// The neighbours of a collective on their nodes.
struct Neighbours {
  std::size_t ranks, of_node, nodes;

  Neighbours(const Links& links, std::size_t count)
      : ranks(count),
        of_node(std::min(count, std::max<std::size_t>(links.of_node, 1))),
        nodes((count + of_node - 1) / of_node) {}
  double latency(const Links& links) const {
    constexpr double local_latency = 2e-6;  // per message within a node
    return local_latency * static_cast<double>(of_node - 1) + links.network.latency * static_cast<double>(nodes - 1);
  }
};

Exchanged ring_cost(const Links& links, const Neighbours& group, double bytes) {
  const double sent = part_of_others(group.ranks) * bytes;
  const double rate = group.nodes > 1 ? std::min(links.local, links.network.bandwidth) : links.local;
  return {sent / rate + group.latency(links), sent, group.nodes > 1 ? sent : 0.0};
}

Exchanged cost_by_node(const Links& links, const Neighbours& group, double bytes, double partial) {
  const double inside = part_of_others(group.of_node) * bytes, between = part_of_others(group.nodes) * partial * bytes;
  return {inside / links.local + between / links.network.bandwidth + group.latency(links),
          inside + between / static_cast<double>(group.of_node), between};
}

Exchanged sum_of(const Exchanged& a, const Exchanged& b) {
  return {a.seconds + b.seconds, a.rank_sent + b.rank_sent, a.node_sent + b.node_sent};
}

class Step {
 public:
  Step(const StepLayout& layout, const Links& links, const ParameterTable& table, std::span<const UnitWork> units)
      : layout_(layout),
        links_(links),
        table_(table),
        units_(units),
        clocks_(!links.copies || layout.ranks > links.of_node, links.contention),
        gathered_(units.size(), 0.0) {
    if (parallel::shards_values(layout.strategy)) gathers_ = parallel::step_gathers(table);
  }

  StepTime run(double optimizer) {
    gather(gathers_.update);
    for (std::size_t i = 0; i < layout_.micro_batches; ++i) {
      const parallel::PassGathers& gathers = i == 0 ? gathers_.first : gathers_.later;
      forward(gathers.forward, i == 0);
      backward(gathers.backward, i + 1 == layout_.micro_batches);
    }
    clocks_.wait_for_all();
    StepTime time{.optimizer = optimizer, .exchange = clocks_.exchanged(), .sent = sent_, .node_sent = node_sent_};
    for (const UnitWork& unit : units_) time.compute += (unit.forward + unit.backward);
    time.compute *= static_cast<double>(layout_.micro_batches);
    const double waited = clocks_.now() - time.compute;
    constexpr double rounding = 1e-9;  // tolerance for sums in two orders
    time.exposed = waited > rounding * time.compute ? waited : 0.0;
    return time;
  }

 private:
  /// Starts a collective; returns its end.
  double exchange(const Exchanged& cost) {
    sent_ += cost.rank_sent;
    node_sent_ += cost.node_sent;
    return clocks_.exchange(cost.seconds);
  }
  /// Starts to gather the values of a unit.
  void gather(std::size_t unit) {
    gathered_[unit] = exchange(all_gather_cost(links_, layout_.shards, units_[unit].values));
  }
  void gather(const parallel::UnitList& units) {
    for (const std::size_t unit : units) gather(unit);
  }
  /// Waits for the values of a unit and of those that it reads.
  void wait_for(std::size_t unit) {
    for (const std::size_t read : table_.read_by(unit)) clocks_.wait_until(gathered_[read]);
  }
  /// Sums a unit's gradients over all ranks, or over the group.
  void reduce(const UnitWork& unit) {
    if (!parallel::shards_optimizer(layout_.strategy)) {
      exchange(all_reduce_cost(links_, layout_.ranks, unit.gradients, layout_.partial));
    } else {
      exchange(reduce_scatter_cost(links_, layout_.shards, unit.gradients, layout_.partial));
    }
  }
  /// Sums this rank's slice of a unit over the groups. Ranks with the same position in every node share the links.
  void sum_replicas(const UnitWork& unit) {
    const std::size_t groups = parallel::shards_gradients(layout_.strategy) ? layout_.ranks / layout_.shards : 1;
    const Links between{.local = links_.local, .of_node = 1, .network = links_.network};
    Exchanged cost = all_reduce_cost(between, groups, unit.gradients);
    cost.rank_sent /= static_cast<double>(layout_.shards);
    exchange(cost);
  }
  bool is_trained(std::size_t unit) const { return table_.units()[unit].trained; }
  bool reduces(bool last) const { return last || parallel::shards_gradients(layout_.strategy); }

  /// Parameters that stay unsharded are gathered once per step, after the update of the previous step, one unit ahead.
  void forward(const std::vector<parallel::UnitList>& gathers, bool first) {
    const bool gathers_all =
        first && !parallel::shards_values(layout_.strategy) && parallel::shards_optimizer(layout_.strategy);
    const auto gather_updated = [&](std::size_t unit) {
      if (gathers_all && is_trained(unit)) gather(unit);
    };
    gather_updated(0);
    const std::size_t count = table_.network_units();
    for (std::size_t u = 0; u < count; ++u) {
      if (!gathers.empty()) gather(gathers[u]);
      wait_for(u);
      if (u + 1 < count) gather_updated(u + 1);
      clocks_.compute(units_[u].forward);
    }
  }

  /// In the last micro-batch, the sum of a unit's slice over groups starts when the gradients of the next unit are
  /// complete.
  void backward(const std::vector<parallel::UnitList>& gathers, bool last) {
    const std::size_t count = table_.network_units();
    for (std::size_t i = count; i-- > table_.first_trained_unit();) {
      if (!gathers.empty()) gather(gathers[i]);
      wait_for(i);
      clocks_.compute(units_[i].backward);
      if (reduces(last) && is_trained(i)) reduce(units_[i]);
      if (last && i + 1 < count && is_trained(i + 1)) sum_replicas(units_[i + 1]);
    }
    if (last) sum_replicas(units_[table_.first_trained_unit()]);
  }

  const StepLayout& layout_;
  const Links& links_;
  const ParameterTable& table_;
  std::span<const UnitWork> units_;
  Clocks clocks_;
  parallel::StepGathers gathers_;  ///< empty if values are not sharded
  std::vector<double> gathered_;   ///< by unit: the end of its last gather
  double sent_ = 0.0, node_sent_ = 0.0;
};

}  // namespace

Exchanged all_gather_cost(const Links& links, std::size_t ranks, double bytes) {
  return reduce_scatter_cost(links, ranks, bytes);
}

Exchanged reduce_scatter_cost(const Links& links, std::size_t ranks, double bytes, double partial) {
  if (ranks < 2) return {};
  const Neighbours group(links, ranks);
  const bool has_levels = group.nodes > 1 && group.of_node > 1;
  return links.by_node && has_levels ? cost_by_node(links, group, bytes, partial) : ring_cost(links, group, bytes);
}

Exchanged all_reduce_cost(const Links& links, std::size_t ranks, double bytes, double partial) {
  return sum_of(reduce_scatter_cost(links, ranks, bytes, partial), all_gather_cost(links, ranks, bytes));
}

StepTime step_time(const StepLayout& layout, const Links& links, const ParameterTable& table,
                   std::span<const UnitWork> units, double optimizer) {
  require(units.size() == table.units().size(),
          fmt::format("step time: the work of {} units for a table of {}", units.size(), table.units().size()));
  if (units.empty()) return {.optimizer = optimizer};
  return Step(layout, links, table, units).run(optimizer);
}

}  // namespace mylos::train
