#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/planning/counting_transport.hpp"
#include "tests/parallel/communicator/ranks_on_nodes.hpp"
#include "tests/support/rank_values.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <vector>

/// Ordered sums over NCCL with ranks assigned to nodes by the tests. They have the bits of sums over MPI, the traffic
/// of the counting transport, and send about one array between nodes.
namespace mylos::parallel {
namespace {

/// For host arrays; device arrays use four times as much, which is less than the arrays here.
constexpr std::size_t small_bucket = std::size_t{1} << 15;
constexpr std::size_t short_bytes = std::size_t{64} << 10;

/// Values of many magnitudes, so that another order changes bits.
template <class T>
Vector<T> values_of(std::size_t rank, std::size_t count) {
  Vector<T> values = uninitialized<T>("test::values", count);
  for (std::size_t i = 0; i < count; ++i) {
    const RandomWords words = tests::mixed_words(17, i, rank);
    values[i] = static_cast<T>(static_cast<float>(static_cast<std::int32_t>(words.word[0])) /
                               static_cast<float>(1u << words.word[1] % 16));
  }
  return values;
}

template <class T>
Buffer in_place(const Vector<T>& vector, ElementType type, MemoryKind memory) {
  return {vector.data(), vector.size(), type, memory};
}

template <class T>
bool same_bits(const Vector<T>& a, const Vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Returns the bytes that each node's ranks send to other nodes, given those of this rank.
std::vector<std::size_t> of_nodes(const std::vector<std::size_t>& nodes, std::uint64_t mine) {
  const std::vector<std::int64_t> of_ranks = gather(tests::launch().world(), static_cast<std::int64_t>(mine));
  std::vector<std::size_t> bytes(*std::ranges::max_element(nodes) + 1);
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    bytes[nodes[rank]] += static_cast<std::size_t>(of_ranks[rank]);
  return bytes;
}

/// Ranks on nodes, with NCCL for device arrays.
class NcclRanksOnNodes {
 public:
  NcclRanksOnNodes(const std::vector<std::size_t>& nodes, SumOrder order)
      : on_nodes_(nodes),
        order_(order),
        device_(make_nccl_communicator(on_nodes_.context, on_nodes_.ranks, {.in_order = true})) {
    device_->set_bucket(small_bucket);
    device_->set_order(order);
    const Vector<float> one("test::one", 1);
    device_->all_reduce(space_, in_place(one, ElementType::float32, MemoryKind::device), "connection").wait(space_);
    space_.fence();
  }

  template <class T, class Result>
  void check_reduce_scatter(std::size_t part, ElementType type, ElementType sum_type) {
    const std::size_t count = part * size();
    const Vector<T> of_device = values_of<T>(rank(), count), of_host = values_of<T>(rank(), count);
    const Vector<Result> sums("test::sums", part), expected("test::expected", part);
    const Traffic before = traffic();
    device_
        ->reduce_scatter(space_, in_place(of_device, type, MemoryKind::device),
                         in_place(sums, sum_type, MemoryKind::device), "test")
        .wait(space_);
    const Traffic sent = traffic() - before;
    on_nodes_.ranks
        ->reduce_scatter(space_, in_place(of_host, type, MemoryKind::host),
                         in_place(expected, sum_type, MemoryKind::host), "test")
        .wait(space_);
    space_.fence();
    EXPECT_TRUE(same_bits(sums, expected)) << "reduce-scatter of " << count * sizeof(T) << " bytes";
    std::byte* const all = reinterpret_cast<std::byte*>(of_host.data());
    expect_counts(sent, [&](Transport& transport, const RankGroup& group) {
      return make_reduce_scatter(transport, group, rules(),
                                 {type, all, divide(count, size()), sum_type, all + group.rank * part * sizeof(T)});
    });
    expect_about(1.1, count * bytes_of(type), count * partial_bytes(type), sent);
  }

  template <class T>
  void check_all_reduce(std::size_t count, ElementType type) {
    const Vector<T> of_device = values_of<T>(rank(), count), of_host = values_of<T>(rank(), count);
    const Traffic before = traffic();
    device_->all_reduce(space_, in_place(of_device, type, MemoryKind::device), "test").wait(space_);
    const Traffic sent = traffic() - before;
    on_nodes_.ranks->all_reduce(space_, in_place(of_host, type, MemoryKind::host), "test").wait(space_);
    space_.fence();
    EXPECT_TRUE(same_bits(of_device, of_host)) << "all-reduce of " << count * sizeof(T) << " bytes";
    std::byte* const all = reinterpret_cast<std::byte*>(of_host.data());
    expect_counts(sent, [&](Transport& transport, const RankGroup& group) {
      return make_all_reduce(transport, group, rules(), type, count, all);
    });
    expect_about(2.2, count * bytes_of(type), count * partial_bytes(type), sent);
  }

 private:
  std::size_t rank() const { return device_->rank(); }
  std::size_t size() const { return device_->size(); }
  ExchangeRules rules() const { return {device_bucket(small_bucket), order_}; }
  static std::size_t partial_bytes(ElementType type) { return bytes_of(partial_type(type)); }

  void expect_counts(const Traffic& sent, const CountingRanks::Make& make) const {
    CountingRanks counting(on_nodes_.nodes, CountingRanks::Data::counted);
    const ExchangeCount count = counting.run(make)[rank()];
    EXPECT_EQ(sent, (Traffic{count.messages, count.bytes, count.network_sent}));
  }

  /// For node-aware sums, expects that no node sends more than `times` the array.
  void expect_about(double times, std::size_t bytes, std::size_t partial_bytes, const Traffic& sent) const {
    const NodeMap map(on_nodes_.nodes);
    const std::vector<std::size_t> of_node = of_nodes(on_nodes_.nodes, sent.network_bytes);
    if (bytes <= short_bytes || (order_ == SumOrder::ranks && !map.keeps_tree())) return;
    for (const std::size_t left : of_node)
      EXPECT_LE(static_cast<double>(left), times * static_cast<double>(partial_bytes));
  }

  ExecutionSpace space_;
  RanksOnNodes on_nodes_;
  SumOrder order_;
  std::unique_ptr<Communicator> device_;
};

class NcclOnNodes : public ::testing::TestWithParam<SumOrder> {};

TEST_P(NcclOnNodes, SumAsOverMpiAndSendEachArrayOnceFromANode) {
  const std::size_t size = tests::launch().world().size();
  if (size < 4) GTEST_SKIP() << "needs two nodes of two ranks";
  std::vector<std::vector<std::size_t>> layouts = node_layouts(size);
  std::vector<std::size_t>& scattered = layouts.emplace_back();  // nodes of 2 non-consecutive ranks
  for (std::size_t rank = 0; rank < size; ++rank) scattered.push_back(std::min(rank, size - 1 - rank));
  for (const std::vector<std::size_t>& nodes : layouts) {
    SCOPED_TRACE("nodes of ranks: " + ::testing::PrintToString(nodes));
    NcclRanksOnNodes ranks(nodes, GetParam());
    for (const std::size_t part : {std::size_t{10}, std::size_t{30001}}) {
      ranks.check_reduce_scatter<float, float>(part, ElementType::float32, ElementType::float32);
      ranks.check_reduce_scatter<double, double>(part, ElementType::float64, ElementType::float64);
      ranks.check_reduce_scatter<bfloat16, bfloat16>(part, ElementType::bfloat16, ElementType::bfloat16);
      ranks.check_reduce_scatter<bfloat16, float>(part, ElementType::bfloat16, ElementType::float32);
    }
    // Parts of different sizes; the first three arrays are short.
    for (const std::size_t count : {std::size_t{1}, std::size_t{1003}, std::size_t{7001}, std::size_t{200003}}) {
      ranks.check_all_reduce<float>(count, ElementType::float32);
      ranks.check_all_reduce<double>(count, ElementType::float64);
      ranks.check_all_reduce<bfloat16>(count, ElementType::bfloat16);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NcclOnNodes, ::testing::Values(SumOrder::nodes, SumOrder::ranks), [](const auto& info) {
  return std::string(info.param == SumOrder::nodes ? "over_nodes" : "over_ranks");
});

}  // namespace
}  // namespace mylos::parallel
