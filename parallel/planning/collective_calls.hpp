#pragma once

#include "parallel/communicator/exchanges/exchanges.hpp"
#include "parallel/sharding/unit_exchanges.hpp"

#include <cstddef>
#include <memory>
#include <vector>

/// The collective calls of a training step in each mode, on any number of ranks. With counting_transport.hpp they give
/// the messages that a program would send on more ranks than any available machine has.
namespace mylos::parallel {

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

}  // namespace mylos::parallel
