#include "parallel/communicator/exchanges/exchange_proof.hpp"

#include "tests/parallel/communicator/communicator_contract.hpp"
#include "tests/support/launch.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <string>

/// Exchanges of the real ranks pass the proof, and each kind of mistake is found, also if another rank makes it.
namespace mylos::parallel {
namespace {

using ::testing::HasSubstr;

enum class Mistake { none, sum, narrow_sum, sum_of_parts, gathered, missing_part };

/// The communicator of all ranks, with a mistake in each call.
class Mistaken final : public Communicator {
 public:
  explicit Mistaken(Mistake mistake) : mistake_(mistake) {}

  std::size_t rank() const override { return world_.rank(); }
  std::size_t size() const override { return world_.size(); }
  const NodeMap& node_map() const override { return world_.node_map(); }

  Event all_reduce(const ExecutionSpace& space, const Buffer& data, const std::string& what) override {
    const Event done = world_.all_reduce(space, data, what);
    if (mistake_ == Mistake::sum || (mistake_ == Mistake::narrow_sum && data.type == ElementType::bfloat16)) {
      done.wait(space);
      change_last_byte(data);
    }
    return done;
  }
  Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                       const std::string& what) override {
    const Event done = world_.reduce_scatter(space, all, mine, what);
    if (mistake_ == Mistake::sum_of_parts && rank() == 0) {
      done.wait(space);
      change_last_byte(mine);
    }
    return done;
  }
  Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                   const std::string& what) override {
    if (mistake_ == Mistake::missing_part) return {};
    const Event done = world_.all_gather(space, mine, all, what);
    done.wait(space);
    if (mistake_ == Mistake::gathered) change_last_byte(all);
    return done;
  }
  Event broadcast(const ExecutionSpace& space, const Buffer& data, std::size_t root, const std::string& what) override {
    return world_.broadcast(space, data, root, what);
  }
  Event gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all, std::size_t root,
               const std::string& what) override {
    return world_.gather(space, mine, all, root, what);
  }
  Event transfer(const ExecutionSpace& space, const Buffer& data, std::size_t from, std::size_t to,
                 const std::string& what) override {
    return world_.transfer(space, data, from, to, what);
  }
  void barrier(const std::string& what) override { world_.barrier(what); }
  void set_bucket(std::size_t bytes) override { world_.set_bucket(bytes); }
  void set_order(SumOrder order) override { world_.set_order(order); }
  std::unique_ptr<Communicator> split(std::size_t color, std::size_t key) override { return world_.split(color, key); }

 private:
  static void change_last_byte(const Buffer& data) {
    auto* const bytes = static_cast<unsigned char*>(data.data);
    bytes[data.count * bytes_of(data.type) - 1] ^= 1;
  }

  Communicator& world_ = tests::launch().world();
  Mistake mistake_;
};

std::string found(Mistake mistake) {
  Mistaken ranks(mistake);
  return wrong_exchange(ranks, ExecutionSpace(), true);
}

TEST(ExchangeProof, HoldsOverMpi) {
  EXPECT_EQ(wrong_exchange(tests::launch().world(), ExecutionSpace(), true), "");
  EXPECT_EQ(found(Mistake::none), "");
}

TEST(ExchangeProof, FindsEachMistake) {
  if (!runs_on_host) GTEST_SKIP() << "the host cannot change the arrays";
  if (tests::launch().world().size() == 1) GTEST_SKIP() << "a single rank exchanges nothing";
  EXPECT_EQ(found(Mistake::sum), "1 of 1310723 elements of sums in float32 are wrong");
  EXPECT_THAT(found(Mistake::narrow_sum), HasSubstr("elements of sums in bfloat16"));
  EXPECT_THAT(found(Mistake::gathered), HasSubstr("1 of 1310723 elements of gathered arrays in float32"));
  EXPECT_THAT(found(Mistake::missing_part), HasSubstr("of 1310723 elements of gathered arrays in float32"));
  const std::string of_parts = found(Mistake::sum_of_parts);
  if (tests::launch().world().rank() == 0) {
    EXPECT_THAT(of_parts, HasSubstr("elements of sums of parts in float32"));
  } else {
    EXPECT_EQ(of_parts, "");
  }
}

TEST(ExchangeProof, MeasuresABandwidth) {
  Communicator& world = tests::launch().world();
  const double measured = measured_bandwidth(world, ExecutionSpace());
  EXPECT_EQ(measured > 0.0, world.size() > 1) << measured;
}

}  // namespace
}  // namespace mylos::parallel
