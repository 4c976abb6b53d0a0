#include "train/engine/step_shares.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

namespace mylos::train {
namespace {

/// Places of each rank, balanced by rows.
std::vector<Places> balanced_places(const SampleStream& stream, std::span<const std::size_t> samples,
                                    std::size_t ranks) {
  Places by_length(samples.size());
  std::iota(by_length.begin(), by_length.end(), std::size_t{0});
  std::ranges::stable_sort(by_length, std::greater<>(),
                           [&](std::size_t place) { return stream.rows_of(samples[place]); });
  using Load = std::pair<std::size_t, std::size_t>;  // rows, rank
  std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
  for (std::size_t rank = 0; rank < ranks; ++rank) loads.emplace(0, rank);
  std::vector<Places> places(ranks);
  for (const std::size_t place : by_length) {
    const auto [rows, rank] = loads.top();
    loads.pop();
    places[rank].push_back(place);
    loads.emplace(rows + stream.rows_of(samples[place]), rank);
  }
  for (Places& own : places) std::ranges::sort(own);
  return places;
}

std::vector<Places> cut(const SampleStream& stream, std::span<const std::size_t> samples, const Places& places,
                        const MicroBatchLimit& limit) {
  std::vector<std::size_t> own;
  for (const std::size_t place : places) own.push_back(samples[place]);
  std::vector<Places> micro_batches;
  for (std::size_t begin = 0, end = 0; begin < own.size(); begin = end) {
    end = micro_batch_end(stream, own, begin, limit);
    micro_batches.emplace_back(places.begin() + static_cast<std::ptrdiff_t>(begin),
                               places.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return micro_batches;
}

Places leaf_places(std::size_t leaf, std::size_t leaves, std::size_t samples) {
  Places places((leaf + 1) * samples / leaves - leaf * samples / leaves);
  std::iota(places.begin(), places.end(), leaf * samples / leaves);
  return places;
}

}  // namespace

std::size_t leaf_of(const Sharing& sharing, std::size_t rank, std::size_t round) {
  const std::size_t together = sharing.reduced_together, groups = sharing.ranks / together;
  return rank / together * (sharing.leaves / groups) + round * together + rank % together;
}

Sharing without_idle_ranks(Sharing sharing, std::size_t samples) {
  // Without leaves the longest samples go one by one to ranks that have nothing yet.
  if (sharing.leaves == 0) sharing.ranks = std::min(sharing.ranks, samples);
  return sharing;
}

StepShares share_step(const SampleStream& stream, std::span<const std::size_t> samples, const MicroBatchLimit& limit,
                      const Sharing& sharing) {
  require(!samples.empty(), "step shares: a global batch without samples");
  StepShares shares;
  const auto shortest =
      std::ranges::min_element(samples, {}, [&](std::size_t sample) { return stream.rows_of(sample); });
  shares.shortest = static_cast<std::size_t>(shortest - samples.begin());
  shares.ranks.resize(sharing.ranks);
  if (sharing.leaves > 0) {
    for (std::size_t rank = 0; rank < sharing.ranks; ++rank) {
      for (std::size_t round = 0; round < sharing.leaves / sharing.ranks; ++round) {
        shares.ranks[rank].push_back(leaf_places(leaf_of(sharing, rank, round), sharing.leaves, samples.size()));
      }
    }
    return shares;
  }
  const std::vector<Places> places = balanced_places(stream, samples, sharing.ranks);
  std::size_t most = 0;
  for (std::size_t rank = 0; rank < sharing.ranks; ++rank) {
    shares.ranks[rank] = cut(stream, samples, places[rank], limit);
    most = std::max(most, shares.ranks[rank].size());
  }
  for (std::vector<Places>& own : shares.ranks) own.resize(most);
  return shares;
}

}  // namespace mylos::train
