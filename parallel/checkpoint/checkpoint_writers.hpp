#pragma once

#include "parallel/launch/launch.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Selection of the ranks that write a checkpoint. A parallel file system slows down when thousands of processes write
/// to one file.
namespace mylos::parallel {

/// Default numbers of writers, per node and in total.
inline constexpr std::size_t writers_of_node = 4;
inline constexpr std::size_t most_writers = 64;

/// Returns for each rank the rank that writes its data; writers write their own. At most `writers` ranks write (0: the
/// default), including rank 0. They are evenly spread over the nodes and over the ranks of a node. A rank's writer is
/// on its own node if that node has one.
std::vector<std::size_t> choose_writers(std::span<const RankPlacement> placements, std::size_t writers);

/// Returns the number of distinct ranks in `writer_of`.
std::size_t count_writers(std::span<const std::size_t> writer_of);

}  // namespace mylos::parallel
