#include "parallel/launch/rank_runtime.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/launch/launcher.hpp"

namespace mylos::parallel {
namespace {

class Alone final : public RankRuntime {
 public:
  std::string library() const override { return std::string(no_mpi); }
  std::string thread_level() const override { return ""; }
  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  std::size_t first_rank_of_node() const override { return 0; }
  std::vector<std::byte> gather(std::span<const std::byte> mine) override { return {mine.begin(), mine.end()}; }

  bool send(std::span<const std::byte>, std::size_t, std::chrono::duration<double>) override { return false; }
  std::optional<std::vector<std::byte>> receive(std::size_t, std::chrono::duration<double>) override { return {}; }

  Communicator& start(const std::vector<RankPlacement>&, std::span<const NodePeer>, std::size_t) override {
    return *world_;
  }
  std::unique_ptr<Communicator> make_nccl_ranks(const DeviceSums&) override { fail(nccl_obstacle()); }
  void set_time_limit(std::chrono::duration<double>) override {}
  void note_step(std::size_t) override {}
  bool announce_error() override { return true; }
  void finish(int) override {}
  void abandon() override {}

 private:
  std::unique_ptr<Communicator> world_ = make_self_communicator();
};

}  // namespace

bool has_mpi() { return false; }

std::unique_ptr<RankRuntime> make_rank_runtime(std::chrono::duration<double>) { return std::make_unique<Alone>(); }

}  // namespace mylos::parallel
