#include "parallel/communicator/exchanges/exchanges.hpp"

#include "parallel/communicator/exchanges/parts.hpp"
#include "parallel/communicator/exchanges/tree_exchange.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <vector>

namespace mylos::parallel {
namespace {

/// An all-gather: each rank's part comes to `all` on all ranks. A rank's own part is copied from `mine` unless it is
/// already in `all`. Each part is sent once to every node, and is passed on among the ranks of the node.
class AllGatherExchange final : public Exchange {
 public:
  /// `bytes`: the parts, in bytes. `map` must outlive the exchange.
  AllGatherExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket, const Parts& bytes,
                    const std::byte* mine, std::byte* all);
  Progress advance() override;

 private:
  void send(Messages& messages, std::size_t to, std::size_t part, std::size_t unit) const;
  void receive(Messages& messages, std::size_t from, std::size_t part, std::size_t unit) const;
  void begin_unit(std::size_t unit, Messages& messages);
  bool spread_in_node();
  void begin_node_step(std::size_t step, Messages& messages);

  Transport& transport_;
  Parts bytes_;
  const std::byte* mine_;
  std::byte* all_;
  ExchangeLevels levels_;
  std::size_t piece_;  ///< in bytes
  std::size_t units_, spread_ = 0;
  Steps unit_steps_, node_steps_;
};

AllGatherExchange::AllGatherExchange(Transport& transport, std::size_t rank, const NodeMap& map, std::size_t bucket,
                                     const Parts& bytes, const std::byte* mine, std::byte* all)
    : transport_(transport),
      bytes_(bytes),
      mine_(mine),
      all_(all),
      levels_(rank, map, exchange_size(map, bucket)),
      piece_(exchange_size(map, bucket).message_bytes),
      units_(bytes.pieces(piece_) * levels_.nodes.rounds()) {}

void AllGatherExchange::send(Messages& messages, std::size_t to, std::size_t part, std::size_t unit) const {
  const Parts::Piece piece = bytes_.piece(part, levels_.piece_of(unit), piece_);
  messages.send(to, all_ + piece.begin, piece.size);
}

void AllGatherExchange::receive(Messages& messages, std::size_t from, std::size_t part, std::size_t unit) const {
  const Parts::Piece piece = bytes_.piece(part, levels_.piece_of(unit), piece_);
  messages.receive(from, all_ + piece.begin, piece.size);
}

void AllGatherExchange::begin_unit(std::size_t unit, Messages& messages) {
  const BlockOrder::Range met = levels_.met_in(unit);
  if (met.contains(levels_.node)) {
    const std::size_t index = levels_.piece_of(unit);
    const Parts::Piece own = bytes_.piece(levels_.rank, index, piece_);
    const std::byte* const source = mine_ + index * piece_;
    if (own.size > 0 && source != all_ + own.begin) transport_.copy(all_ + own.begin, source, own.size);
  }
  for (const NodeJob& job : levels_.jobs(met)) {
    const auto theirs = levels_.handled_rank(job, levels_.local);
    if (job.node != levels_.node && theirs) receive(messages, *theirs, *theirs, unit);
  }
  for (std::size_t node = met.begin; node < met.end; ++node) {
    if (node != levels_.node) send(messages, levels_.partner_on(node), levels_.rank, unit);
  }
}

void AllGatherExchange::begin_node_step(std::size_t step, Messages& messages) {
  const NodeJob job = levels_.jobs(levels_.met_in(spread_))[step / levels_.locals.rounds()];
  const BlockOrder::Range met = levels_.local_met_in(step);
  const std::span<const std::size_t> ranks = levels_.locals_of_node();
  for (std::size_t other = met.begin; other < met.end; ++other) {
    const auto theirs = levels_.handled_rank(job, other);
    if (other != levels_.local && theirs) receive(messages, ranks[other], *theirs, spread_);
  }
  const auto mine = levels_.handled_rank(job, levels_.local);
  for (std::size_t other = met.begin; mine && other < met.end; ++other) {
    if (other != levels_.local) send(messages, ranks[other], *mine, spread_);
  }
}

/// Advances the distribution of the next arrived unit among this node's ranks. Returns true if it made progress.
bool AllGatherExchange::spread_in_node() {
  if (spread_ == unit_steps_.ended()) return false;
  const std::size_t steps = levels_.jobs(levels_.met_in(spread_)).size() * levels_.locals.rounds();
  const auto begin = [this](std::size_t step, Messages& messages) { begin_node_step(step, messages); };
  const bool moved = node_steps_.advance(transport_, steps, begin, [](std::size_t) {});
  if (node_steps_.ended() < steps) return moved;
  ++spread_;
  node_steps_.restart();
  return true;
}

Exchange::Progress AllGatherExchange::advance() {
  if (spread_ == units_) return Progress::done;
  const auto begin = [this](std::size_t unit, Messages& messages) { begin_unit(unit, messages); };
  const std::size_t ready = std::min(units_, spread_ + 2);
  const bool arrived = unit_steps_.advance(transport_, ready, begin, [](std::size_t) {});
  const bool has_levels = levels_.map.has_levels();
  if (!has_levels) spread_ = unit_steps_.ended();
  const bool moved = has_levels && spread_in_node();
  if (spread_ == units_) return Progress::done;
  return arrived || moved ? Progress::moved : Progress::waiting;
}

using Progress = Exchange::Progress;

/// Arrays up to this size are dominated by message latency and, over many ranks, go along a tree.
constexpr std::size_t short_bytes = std::size_t{64} << 10;
/// The same limit for the parts of a gather: 1 MiB for 16,384 ranks.
constexpr std::size_t short_part_bytes = 64;
/// With so few ranks, all send to all at once: a few rounds instead of the many of a tree.
constexpr std::size_t few_ranks = 8;
/// Few ranks exchange arrays up to this size without node levels, which take more rounds.
constexpr std::size_t flat_bytes = std::size_t{4} << 10;
/// Maximum size of a message in a gather.
constexpr std::size_t gathered_piece = std::size_t{4} << 20;

bool goes_along_tree(std::size_t ranks, std::size_t bytes) { return ranks > few_ranks && bytes <= short_bytes; }
bool gathers_along_tree(std::size_t ranks, const Parts& bytes) {
  return ranks > few_ranks && (bytes.count <= short_bytes || bytes.part <= short_part_bytes);
}

const NodeMap& map_of_sum(const RankGroup& group, const ExchangeRules& rules, std::size_t bytes) {
  if (bytes <= flat_bytes) return *group.flat;
  return levels_of_sum(group, bytes <= short_bytes ? SumOrder::ranks : rules.order);
}

const NodeMap& map_of_gather(const RankGroup& group, std::size_t bytes) {
  return bytes <= flat_bytes ? *group.flat : levels_of_copy(group);
}

Parts in_bytes(const Parts& elements, ElementType type) {
  return {elements.count * bytes_of(type), elements.part * bytes_of(type)};
}

/// Steps that run one after the other. Each is created when the previous one has ended, and may be null if there is
/// nothing to do.
class Sequence final : public Exchange {
 public:
  using Make = std::function<std::unique_ptr<Exchange>()>;
  explicit Sequence(std::vector<Make> steps) : steps_(std::move(steps)) {}

  Progress advance() override {
    if (!current_) {
      if (next_ == steps_.size()) return Progress::done;
      current_ = steps_[next_++]();
    }
    if (current_) {
      const Progress progress = current_->advance();
      if (progress != Progress::done) return progress;
      current_.reset();
    }
    return next_ == steps_.size() ? Progress::done : Progress::moved;
  }

 private:
  std::vector<Make> steps_;
  std::size_t next_ = 0;
  std::unique_ptr<Exchange> current_;
};

/// A long gather: the root receives from a few ranks at a time.
class DirectGather final : public Exchange {
 public:
  DirectGather(Transport& transport, const RankGroup& group, std::size_t root, std::size_t part_bytes,
               const std::byte* mine, std::byte* all)
      : transport_(transport), group_(group), root_(root), part_bytes_(part_bytes), mine_(mine), all_(all) {}

  Progress advance() override {
    if (!messages_) {
      messages_ = transport_.make_messages();
      if (is_root() && mine_ != all_ + root_ * part_bytes_) {
        transport_.copy(all_ + root_ * part_bytes_, mine_, part_bytes_);
      }
    }
    if (!messages_->done()) return Progress::waiting;
    if (first_ == (is_root() ? group_.size() : 1)) return Progress::done;
    const std::size_t bytes = std::min(gathered_piece, part_bytes_ - begun_);
    const std::size_t last = is_root() ? std::min(group_.size(), first_ + few_ranks) : 1;
    if (is_root()) {
      for (std::size_t rank = first_; rank < last; ++rank) {
        if (rank != root_) messages_->receive(rank, all_ + rank * part_bytes_ + begun_, bytes);
      }
    } else {
      messages_->send(root_, mine_ + begun_, bytes);
    }
    begun_ += bytes;
    if (begun_ == part_bytes_) {
      begun_ = 0;
      first_ = last;
    }
    return Progress::moved;
  }

 private:
  bool is_root() const { return group_.rank == root_; }

  Transport& transport_;
  const RankGroup& group_;
  std::size_t root_, part_bytes_;
  const std::byte* mine_;
  std::byte* all_;
  std::size_t first_ = 0, begun_ = 0;
  std::unique_ptr<Messages> messages_;
};

std::unique_ptr<Exchange> nothing() { return std::make_unique<Sequence>(std::vector<Sequence::Make>()); }

/// Sums up the tree, rounds once, and broadcasts down the tree.
std::unique_ptr<Exchange> make_short_all_reduce(Transport& transport, const RankGroup& group,
                                                const ExchangeRules& rules, ElementType type, std::size_t count,
                                                std::byte* data) {
  const ElementType partial = partial_type(type);
  const std::size_t bytes = count * bytes_of(partial);
  const auto sums = std::make_shared<std::byte*>(data);
  const auto up = [=, &transport, &group] {
    std::byte* const memory = transport.reserve(3 * bytes);
    if (partial != type) *sums = memory + 2 * bytes;
    return std::make_unique<TreeSumExchange>(transport, group.rank, group.size(),
                                             TreeSumExchange::Arrays{type, count, data, *sums, memory});
  };
  const auto down = [=, &transport, &group]() -> std::unique_ptr<Exchange> {
    const std::array<const void*, 1> sum{*sums};
    if (group.rank == 0 && *sums != data) transport.sum(partial, sum, count, type, data);
    return make_broadcast(transport, group, rules, 0, count * bytes_of(type), data);
  };
  return std::make_unique<Sequence>(std::vector<Sequence::Make>{up, down});
}

/// Sums up the tree, and scatters the parts down the tree.
std::unique_ptr<Exchange> make_short_reduce_scatter(Transport& transport, const RankGroup& group,
                                                    const SumArrays& arrays) {
  const ElementType partial = partial_type(arrays.type);
  const std::size_t bytes = arrays.parts.count * bytes_of(partial);
  const auto sums = std::make_shared<std::byte*>(nullptr);
  const auto up = [=, &transport, &group] {
    std::byte* const memory = transport.reserve(3 * bytes);
    *sums = memory + 2 * bytes;
    return std::make_unique<TreeSumExchange>(
        transport, group.rank, group.size(),
        TreeSumExchange::Arrays{arrays.type, arrays.parts.count, arrays.all, *sums, memory});
  };
  const auto down = [=, &transport, &group] {
    return std::make_unique<TreePartsExchange>(transport, group.rank, group.size(), 0,
                                               TreePartsExchange::Direction::down, in_bytes(arrays.parts, partial),
                                               *sums);
  };
  const auto keep = [=, &transport, &group]() -> std::unique_ptr<Exchange> {
    const std::array<const void*, 1> sum{*sums};
    const std::size_t own = arrays.parts.piece(group.rank, 0, arrays.parts.part).size;
    transport.sum(partial, sum, own, arrays.sum_type, arrays.mine);
    return nullptr;
  };
  return std::make_unique<Sequence>(std::vector<Sequence::Make>{up, down, keep});
}

std::unique_ptr<Exchange> make_tree_gather(Transport& transport, const RankGroup& group, std::size_t root,
                                           std::size_t part_bytes, const std::byte* mine, std::byte* all) {
  const std::size_t ranks = group.size(), position = (group.rank + ranks - root) % ranks;
  const auto parts = std::make_shared<std::byte*>(nullptr);
  const auto up = [=, &transport, &group] {
    *parts = transport.reserve((tree_position(position, ranks).end - position) * part_bytes);
    transport.copy(*parts, mine, part_bytes);
    return std::make_unique<TreePartsExchange>(transport, group.rank, ranks, root, TreePartsExchange::Direction::up,
                                               Parts{ranks * part_bytes, part_bytes}, *parts);
  };
  const auto put = [=, &transport]() -> std::unique_ptr<Exchange> {
    if (position != 0) return nullptr;
    transport.copy(all + root * part_bytes, *parts, (ranks - root) * part_bytes);
    transport.copy(all, *parts + (ranks - root) * part_bytes, root * part_bytes);
    return nullptr;
  };
  return std::make_unique<Sequence>(std::vector<Sequence::Make>{up, put});
}

}  // namespace

std::unique_ptr<Exchange> make_all_reduce(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                          ElementType type, std::size_t count, std::byte* data) {
  const std::size_t bytes = count * bytes_of(type);
  if (bytes == 0 || group.size() == 1) return nothing();
  if (goes_along_tree(group.size(), bytes)) return make_short_all_reduce(transport, group, rules, type, count, data);
  const Parts parts = divide(count, group.size());
  std::byte* const mine = data + parts.piece(group.rank, 0, parts.part).begin * bytes_of(type);
  const NodeMap& map = map_of_sum(group, rules, bytes);
  const auto sum = [=, &transport, &group, &map] {
    return std::make_unique<ReduceScatterExchange>(transport, group.rank, map, rules.bucket,
                                                   SumArrays{type, data, parts, type, mine});
  };
  const auto gather = [=, &transport, &group] {
    return std::make_unique<AllGatherExchange>(transport, group.rank, map_of_gather(group, bytes), rules.bucket,
                                               in_bytes(parts, type), mine, data);
  };
  return std::make_unique<Sequence>(std::vector<Sequence::Make>{sum, gather});
}

std::unique_ptr<Exchange> make_reduce_scatter(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                              const SumArrays& arrays) {
  if (arrays.parts.count == 0) return nothing();
  const std::size_t bytes = arrays.parts.count * bytes_of(arrays.type);
  if (goes_along_tree(group.size(), bytes)) return make_short_reduce_scatter(transport, group, arrays);
  return std::make_unique<ReduceScatterExchange>(transport, group.rank, map_of_sum(group, rules, bytes), rules.bucket,
                                                 arrays);
}

std::unique_ptr<Exchange> make_all_gather(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                          const Parts& bytes, const std::byte* mine, std::byte* all) {
  const std::size_t ranks = group.size();
  if (bytes.count == 0) return nothing();
  if (!gathers_along_tree(ranks, bytes)) {
    return std::make_unique<AllGatherExchange>(transport, group.rank, map_of_gather(group, bytes.count), rules.bucket,
                                               bytes, mine, all);
  }
  // Each rank gathers the parts of its subtree at their final position.
  std::byte* const own = all + group.rank * bytes.part;
  const auto up = [=, &transport, &group] {
    if (own != mine) transport.copy(own, mine, bytes.piece(group.rank, 0, bytes.part).size);
    return std::make_unique<TreePartsExchange>(transport, group.rank, ranks, 0, TreePartsExchange::Direction::up, bytes,
                                               own);
  };
  const auto down = [=, &transport, &group] { return make_broadcast(transport, group, rules, 0, bytes.count, all); };
  return std::make_unique<Sequence>(std::vector<Sequence::Make>{up, down});
}

std::unique_ptr<Exchange> make_broadcast(Transport& transport, const RankGroup& group, const ExchangeRules& rules,
                                         std::size_t root, std::size_t bytes, std::byte* data) {
  return std::make_unique<BroadcastExchange>(transport, group.rank, levels_of_copy(group), rules.bucket, root, bytes,
                                             data);
}

std::unique_ptr<Exchange> make_gather(Transport& transport, const RankGroup& group, std::size_t root,
                                      std::size_t part_bytes, const std::byte* mine, std::byte* all) {
  if (part_bytes == 0) return nothing();
  if (gathers_along_tree(group.size(), {group.size() * part_bytes, part_bytes})) {
    return make_tree_gather(transport, group, root, part_bytes, mine, all);
  }
  return std::make_unique<DirectGather>(transport, group, root, part_bytes, mine, all);
}

}  // namespace mylos::parallel
