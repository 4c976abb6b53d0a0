#include "parallel/checkpoint/checkpoint_writers.hpp"

#include <algorithm>
#include <set>

namespace mylos::parallel {
namespace {

using Ranks = std::vector<std::size_t>;

std::vector<Ranks> ranks_of_nodes(std::span<const RankPlacement> placements) {
  std::vector<Ranks> nodes;
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    nodes.resize(std::max(nodes.size(), placements[rank].node + 1));
    nodes[placements[rank].node].push_back(rank);
  }
  return nodes;
}

std::size_t default_writers(const std::vector<Ranks>& nodes) {
  std::size_t count = 0;
  for (const Ranks& node : nodes) count += std::min(node.size(), writers_of_node);
  return std::min(count, most_writers);
}

/// Returns the begin of part `index` when `size` items are divided evenly into `parts`.
std::size_t part_begin(std::size_t size, std::size_t parts, std::size_t index) { return index * size / parts; }

/// Returns the number of writers on each node. Nodes receive one more writer in turn, as long as they have ranks left.
/// With fewer writers than nodes, nodes at even distances have one.
std::vector<std::size_t> writers_of_nodes(const std::vector<Ranks>& nodes, std::size_t writers) {
  std::vector<std::size_t> count(nodes.size(), 0);
  if (writers < nodes.size()) {
    for (std::size_t i = 0; i < writers; ++i) count[part_begin(nodes.size(), writers, i)] = 1;
    return count;
  }
  while (writers > 0) {
    for (std::size_t node = 0; node < nodes.size() && writers > 0; ++node) {
      if (count[node] == nodes[node].size()) continue;
      ++count[node];
      --writers;
    }
  }
  return count;
}

}  // namespace

std::vector<std::size_t> choose_writers(std::span<const RankPlacement> placements, std::size_t writers) {
  const std::vector<Ranks> nodes = ranks_of_nodes(placements);
  const std::size_t wanted = std::min(writers == 0 ? default_writers(nodes) : writers, placements.size());
  const std::vector<std::size_t> count = writers_of_nodes(nodes, wanted);
  std::vector<std::size_t> writer_of(placements.size());
  std::size_t last = 0;  // the last writer before this node; node 0 always has a writer
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const Ranks& ranks = nodes[node];
    for (const std::size_t rank : ranks) writer_of[rank] = last;
    for (std::size_t i = 0; i < count[node]; ++i) {
      const std::size_t begin = part_begin(ranks.size(), count[node], i);
      last = ranks[begin];
      for (std::size_t k = begin; k < part_begin(ranks.size(), count[node], i + 1); ++k) writer_of[ranks[k]] = last;
    }
  }
  return writer_of;
}

std::size_t count_writers(std::span<const std::size_t> writer_of) {
  return std::set<std::size_t>(writer_of.begin(), writer_of.end()).size();
}

}  // namespace mylos::parallel
