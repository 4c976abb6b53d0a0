#pragma once

#include "parallel/launch/launch.hpp"

#include <cstddef>
#include <span>
#include <vector>

/// Which ranks write a checkpoint. A parallel file system slows down when thousands of processes write one file.
namespace mylos::parallel {

/// The default: as many writers on each node, and in all.
inline constexpr std::size_t writers_of_node = 4;
inline constexpr std::size_t most_writers = 64;

/// For each rank, the rank that writes what it saves; a writer writes its own. At most `writers` ranks write (0: the
/// default), evenly spread over the nodes and over the ranks of a node, rank 0 among them. A rank's writer is on its
/// own node if that has one.
std::vector<std::size_t> choose_writers(std::span<const RankPlacement> placements, std::size_t writers);

/// How many different ranks `writer_of` names.
std::size_t count_writers(std::span<const std::size_t> writer_of);

}  // namespace mylos::parallel
