#include "parallel/communicator/value_broadcast.hpp"

#include "parallel/communicator/agreement.hpp"
#include "tests/parallel/communicator/ranks_on_nodes.hpp"
#include "tests/support/file_size_limit.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

/// Arrays that are passed on to ranks whose nodes a test specifies. All of them run on one machine.
namespace mylos::parallel {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr std::size_t passed_piece = std::size_t{1} << 17, passed_numbers = 100'001;
constexpr std::size_t passed_bytes = passed_numbers * sizeof(std::int32_t);

/// Returns the number of the file that is mapped at `address`; 0 if it is memory of this process alone.
std::int64_t mapped_file(const void* address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0, end = 0, file = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %*s %*s %lu", &begin, &end, &file) != 3) continue;
    const auto location = reinterpret_cast<std::uintptr_t>(address);
    if (begin <= location && location < end) return static_cast<std::int64_t>(file);
  }
  return 0;
}

/// Passes numbers on, expects them on this rank, and returns the mapped_file of each rank.
std::vector<std::int64_t> files_of_passing_on(NodeArrays& arrays, Communicator& ranks) {
  std::vector<std::int32_t> expected(passed_numbers);
  std::iota(expected.begin(), expected.end(), -7);
  const auto bytes = std::as_bytes(std::span(expected));
  const bool is_first = ranks.rank() == 0;
  const SharedBytes passed = arrays.pass_on(is_first ? bytes : std::span<const std::byte>(), bytes.size());
  const std::span<const std::byte> found = passed.memory ? passed.bytes : bytes;
  EXPECT_TRUE(passed.memory || is_first);
  EXPECT_TRUE(std::ranges::equal(found, bytes));
  return gather(ranks, mapped_file(found.data()));
}

std::size_t size_of_node(const RanksOnNodes& on_nodes, std::size_t rank) {
  return static_cast<std::size_t>(std::ranges::count(on_nodes.nodes, on_nodes.nodes[rank]));
}

std::vector<std::vector<std::size_t>> layouts() { return node_layouts(tests::launch().world().size()); }

TEST(NodeArrays, TheRanksOfANodeShareOneCopy) {
  for (const std::vector<std::size_t>& nodes : layouts()) {
    RanksOnNodes on_nodes(nodes);
    NodeArrays arrays(*on_nodes.ranks, passed_piece);
    const std::vector<std::int64_t> files = files_of_passing_on(arrays, *on_nodes.ranks);
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      EXPECT_EQ(files[rank] != 0, size_of_node(on_nodes, rank) > 1) << rank;
      for (std::size_t other = 0; other < rank && files[rank] != 0; ++other) {
        EXPECT_EQ(files[rank] == files[other], nodes[rank] == nodes[other]) << rank << " and " << other;
      }
    }
    EXPECT_EQ(arrays.remark(), "");
  }
}

TEST(NodeArrays, AnArrayIsSentToEachNodeOnce) {
  for (const std::vector<std::size_t>& nodes : layouts()) {
    RanksOnNodes on_nodes(nodes);
    Communicator& ranks = *on_nodes.ranks;
    NodeArrays arrays(ranks, passed_piece);
    files_of_passing_on(arrays, ranks);  // makes the groups
    const Traffic before = traffic();
    files_of_passing_on(arrays, ranks);
    const Traffic sent = traffic() - before;
    const auto others = static_cast<double>(ranks.node_map().nodes() - 1);
    const double small = 4096.0 * static_cast<double>(ranks.size());
    const double all = sum(ranks, static_cast<double>(sent.bytes));
    EXPECT_GE(all, others * passed_bytes);
    EXPECT_LE(all, others * passed_bytes + small) << "nothing more inside of nodes";
  }
}

TEST(NodeArrays, RanksThatCannotShareMemoryHaveCopies) {
  for (const std::vector<std::size_t>& nodes : layouts()) {
    RanksOnNodes on_nodes(nodes);
    Communicator& ranks = *on_nodes.ranks;
    const bool is_scarce = size_of_node(on_nodes, nodes.size() - 1) > 1;
    NodeArrays arrays(ranks, passed_piece);
    files_of_passing_on(arrays, ranks);  // makes the groups
    EXPECT_EQ(arrays.remark(), "");
    std::optional<tests::FileSizeLimit> limit;
    if (nodes[ranks.rank()] == nodes.back()) limit.emplace(passed_bytes / 2);  // memory is a file, too
    for (int i = 0; i < 2; ++i) {
      const std::vector<std::int64_t> files = files_of_passing_on(arrays, ranks);
      for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
        EXPECT_EQ(files[rank] != 0, size_of_node(on_nodes, rank) > 1 && nodes[rank] != nodes.back()) << rank;
      }
    }
    limit.reset();
    const std::string remark = arrays.remark();
    EXPECT_THAT(gather(ranks, remark), Each(remark)) << "the same on all ranks";
    EXPECT_EQ(remark.empty(), !is_scarce) << remark;
    if (!is_scarce) continue;
    EXPECT_THAT(remark, HasSubstr("on 1 of " + std::to_string(ranks.node_map().nodes()) + " node"));
    EXPECT_THAT(remark, HasSubstr("ranks cannot share memory, so each has a copy of the data: cannot reserve 400004"));
  }
}

}  // namespace
}  // namespace mylos::parallel
