#pragma once

#include "parallel/communicator/mpi/mpi_communicator.hpp"
#include "tests/support/launch.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace mylos::parallel {

/// A communicator of all ranks with its own thread, with ranks assigned to nodes as a test specifies.
struct RanksOnNodes {
  explicit RanksOnNodes(const std::vector<std::size_t>& nodes_of_ranks) : nodes(nodes_of_ranks) {
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    ranks = make_mpi_communicator(context, make_mpi_group(all), 7, nodes);
  }
  ~RanksOnNodes() {
    ranks->barrier("the end of a test");
    context.thread.finish();
    MPI_Comm_free(&all);
  }
  RanksOnNodes(const RanksOnNodes&) = delete;
  RanksOnNodes& operator=(const RanksOnNodes&) = delete;

  std::vector<std::size_t> nodes;
  MPI_Comm all = MPI_COMM_NULL;
  MpiContext context;
  std::shared_ptr<MpiRanks> ranks;
};

/// Returns layouts with 1, 2, 3 or 4 consecutive ranks per node, with ranks alternating between two nodes, and with all
/// but the first rank on one node.
inline std::vector<std::vector<std::size_t>> node_layouts(std::size_t ranks) {
  std::vector<std::vector<std::size_t>> all;
  for (const std::size_t ranks_of_node : {1u, 2u, 3u, 4u}) {
    std::vector<std::size_t>& nodes = all.emplace_back();
    for (std::size_t rank = 0; rank < ranks; ++rank) nodes.push_back(rank / ranks_of_node);
  }
  std::vector<std::size_t>& in_turns = all.emplace_back();
  for (std::size_t rank = 0; rank < ranks; ++rank) in_turns.push_back(rank % 2);
  std::vector<std::size_t>& uneven = all.emplace_back(ranks, std::size_t{1});
  uneven.front() = 0;
  return all;
}

}  // namespace mylos::parallel
