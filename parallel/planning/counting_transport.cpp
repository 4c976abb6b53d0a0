#include "parallel/planning/counting_transport.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/exchanges/rank_sum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

namespace mylos::parallel {

class CountingTransport final : public Transport {
 public:
  CountingTransport(CountingRanks& ranks, std::size_t rank) : ranks_(ranks), rank_(rank) {}

  class Batch final : public Messages {
   public:
    explicit Batch(CountingTransport& owner) : owner_(owner) {}

    void send(std::size_t to, const std::byte* data, std::size_t bytes) override {
      if (bytes == 0) return;
      owner_.send(to, data, bytes);
      is_open_ = true;
    }
    void receive(std::size_t from, std::byte* data, std::size_t bytes) override {
      if (bytes == 0) return;
      expected_.push_back({from, data, bytes});
      is_open_ = true;
    }
    bool done() override {
      while (!expected_.empty() && owner_.take(expected_.back())) expected_.pop_back();
      if (!expected_.empty()) return false;
      if (is_open_ && owner_.ranks_.alone_) ++owner_.mine().count.rounds;
      is_open_ = false;
      return true;
    }

   private:
    friend class CountingTransport;
    CountingTransport& owner_;
    struct Expected {
      std::size_t from;
      std::byte* data;
      std::size_t bytes;
    };
    std::vector<Expected> expected_;
    bool is_open_ = false;
  };

  std::unique_ptr<Messages> make_messages() override { return std::make_unique<Batch>(*this); }

  std::byte* reserve(std::size_t bytes) override {
    CountingRanks::Rank& rank = mine();
    rank.count.memory = std::max(rank.count.memory, bytes);
    if (rank.untouched_bytes < bytes) {
      rank.untouched = std::make_unique_for_overwrite<std::byte[]>(bytes);
      rank.untouched_bytes = bytes;
    }
    return rank.untouched.get();
  }

  void sum(ElementType type, std::span<const void* const> parts, std::size_t count, ElementType sum_type,
           void* sums) override {
    if (moves()) sum_over_ranks(type, parts, count, sum_type, sums);
  }
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (moves() && bytes > 0) std::memcpy(to, from, bytes);
  }

 private:
  bool moves() const { return ranks_.data_ == CountingRanks::Data::moved; }
  CountingRanks::Rank& mine() { return ranks_.ranks_[rank_]; }
  bool is_outside(std::size_t other) const { return ranks_.nodes_->node_of(other) != ranks_.nodes_->node_of(rank_); }

  void send(std::size_t to, const std::byte* data, std::size_t bytes) {
    ExchangeCount& count = mine().count;
    ++count.messages;
    count.bytes += bytes;
    if (is_outside(to)) count.network_sent += bytes;
    if (ranks_.alone_) return;
    std::vector<std::byte> copy;
    if (moves()) copy.assign(data, data + bytes);
    ranks_.ranks_[to].arrived[rank_].push_back({std::move(copy), bytes, count.rounds + 1});
  }

  bool take(const Batch::Expected& expected) {
    ExchangeCount& count = mine().count;
    if (!ranks_.alone_) {
      std::deque<CountingRanks::Message>& queue = mine().arrived[expected.from];
      if (queue.empty()) return false;
      const CountingRanks::Message& message = queue.front();
      if (message.bytes != expected.bytes) {
        throw std::logic_error(fmt::format("rank {} expects {} bytes of rank {} and gets {}", rank_, expected.bytes,
                                           expected.from, message.bytes));
      }
      if (moves()) std::memcpy(expected.data, message.data.data(), message.bytes);
      count.rounds = std::max(count.rounds, message.round);
      queue.pop_front();
    }
    if (is_outside(expected.from)) count.network_received += expected.bytes;
    return true;
  }

  CountingRanks& ranks_;
  std::size_t rank_;
};

CountingRanks::CountingRanks(std::span<const std::size_t> node_of_rank, Data data)
    : nodes_(std::make_shared<const NodeMap>(node_of_rank)),
      flat_(std::make_shared<const NodeMap>(apart(node_of_rank.size()))),
      data_(data),
      ranks_(node_of_rank.size()) {}

std::vector<ExchangeCount> CountingRanks::run(const Make& make) {
  struct Part {
    RankGroup group;
    std::unique_ptr<CountingTransport> transport;
    std::unique_ptr<Exchange> exchange;
    bool done = false;
  };
  alone_ = false;
  std::vector<Part> parts(ranks_.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    ranks_[rank].count = {};
    parts[rank].group = {rank, nodes_, flat_};
    parts[rank].transport = std::make_unique<CountingTransport>(*this, rank);
    parts[rank].exchange = make(*parts[rank].transport, parts[rank].group);
  }
  for (std::size_t left = parts.size(), idle = 0; left > 0;) {
    bool moved = false;
    for (Part& part : parts) {
      if (part.done) continue;
      const Exchange::Progress progress = part.exchange->advance();
      moved = moved || progress != Exchange::Progress::waiting;
      part.done = progress == Exchange::Progress::done;
      if (part.done) --left;
    }
    // A call may send something and still return `waiting`, so one round without progress proves nothing.
    idle = moved ? 0 : idle + 1;
    if (idle > 3) throw std::logic_error("ranks wait for each other");
  }
  std::vector<ExchangeCount> counts;
  for (const Rank& rank : ranks_) {
    for (const auto& [from, queue] : rank.arrived) {
      if (!queue.empty()) throw std::logic_error(fmt::format("a message of rank {} has no receiver", from));
    }
    counts.push_back(rank.count);
  }
  return counts;
}

ExchangeCount CountingRanks::run_alone(std::size_t rank, const Make& make) {
  require(data_ == Data::counted, "a rank alone moves no data");
  alone_ = true;
  ranks_[rank].count = {};
  const RankGroup group{rank, nodes_, flat_};
  CountingTransport transport(*this, rank);
  const std::unique_ptr<Exchange> exchange = make(transport, group);
  while (exchange->advance() != Exchange::Progress::done) continue;
  return ranks_[rank].count;
}

}  // namespace mylos::parallel
