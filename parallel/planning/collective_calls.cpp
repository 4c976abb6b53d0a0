#include "parallel/planning/collective_calls.hpp"

#include "parallel/planning/strategy_record.hpp"

#include <span>

namespace mylos::parallel {

std::vector<Members> groups_of(std::size_t rank, std::size_t ranks, std::size_t shard_size) {
  std::vector<Members> groups(3);
  for (std::size_t member = 0; member < ranks; ++member) {
    groups[CollectiveCall::all].push_back(member);
    if (member / shard_size == rank / shard_size) groups[CollectiveCall::shard].push_back(member);
    if (member % shard_size == rank % shard_size) groups[CollectiveCall::replicate].push_back(member);
  }
  return groups;
}

std::vector<CollectiveCall> calls_of_step(const UnitExchanges& exchanges) {
  StrategyRecord record(exchanges);
  std::size_t begin = 0;
  for (int step = 0; step < 3; ++step) {  // units are prefetched in the order of earlier steps
    begin = record.acts().size();
    record.step(exchanges.settings.micro_batches);
    record.sum_squares();
    record.update();
  }
  std::vector<CollectiveCall> calls;
  for (const StrategyRecord::Act& act : std::span(record.acts()).subspan(begin)) {
    const bool begins = act.kind == StrategyRecord::Act::Kind::begin;
    if (begins && exchanges.ranks_of(act.call.group) > 1) calls.push_back(act.call);
  }
  return calls;
}

std::unique_ptr<Exchange> make_exchange(const CollectiveCall& call, Transport& transport, const RankGroup& group,
                                        const ExchangeRules& rules, std::byte* array) {
  const Parts parts = call.part > 0 ? Parts{call.count, call.part} : divide(call.count, group.size());
  const std::size_t part_bytes = parts.part * bytes_of(call.type);
  std::byte* const mine = array + group.rank * part_bytes;
  switch (call.kind) {
    case CollectiveCall::Kind::all_reduce:
      return make_all_reduce(transport, group, rules, call.type, call.count, array);
    case CollectiveCall::Kind::reduce_scatter:
      return make_reduce_scatter(transport, group, rules, {call.type, array, parts, call.sum_type, mine});
    case CollectiveCall::Kind::all_gather:
      return make_all_gather(transport, group, rules, {call.count * bytes_of(call.type), part_bytes}, mine, array);
    case CollectiveCall::Kind::broadcast:
      return make_broadcast(transport, group, rules, call.root, call.count * bytes_of(call.type), array);
    default:
      return make_gather(transport, group, call.root, part_bytes, mine, array);
  }
}

}  // namespace mylos::parallel
