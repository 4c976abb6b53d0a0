#include "core/base/error.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/process/watchdog.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/standard_output.hpp"
#include "parallel/communicator/mpi/mpi_check.hpp"
#include "parallel/communicator/mpi/mpi_communicator.hpp"
#include "parallel/communicator/mpi/mpi_operations.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/launch/launcher.hpp"
#include "parallel/launch/mpi_watch.hpp"
#include "parallel/launch/rank_runtime.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <list>
#include <optional>
#include <string_view>
#include <thread>

namespace mylos::parallel {
namespace {

/// How long a rank that ends with an error waits for others that also end.
constexpr std::chrono::milliseconds farewell{1000};
/// Added to the limit of a call that waits inside MPI, because libraries need time to start processes and to connect
/// many of them, in seconds.
constexpr double start_time = 15.0, start_time_per_rank = 0.05;
/// The first rank reports a call that does not return; the next two only if they are still there after this time each.
/// The others then end without a line.
constexpr double next_tells = 3.0;
constexpr std::size_t last_to_tell = 2;

/// Returns the library's version, shortened: "Open MPI v4.1.4" without the text after the comma, and "MPICH Version:
/// 4.0.2" without the tab.
std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MYLOS_CHECK_MPI(MPI_Get_library_version(text, &length));
  const std::string_view version(text, static_cast<std::size_t>(length));
  std::string name;
  for (const char each : version.substr(0, version.find_first_of(",\n"))) {
    if (each != '\t') {
      name += each;
    } else if (!name.ends_with(' ')) {
      name += ' ';
    }
  }
  return name;
}

/// Polls until `is_done` or `limit` has passed. At first it polls continuously, so that short latencies are measured
/// correctly; then it sleeps in between, so that others can use the processor.
template <class IsDone>
void poll(std::chrono::duration<double> limit, const IsDone& is_done) {
  constexpr std::chrono::milliseconds eager(2);
  const auto begin = std::chrono::steady_clock::now();
  while (!is_done()) {
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (waited > limit) return;
    if (waited > eager) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

/// Sets an environment variable, if it is not set, until the end of the scope, so that child processes do not see it.
class PassingVariable {
 public:
  PassingVariable(const char* name, const char* value) : name_(name), is_ours_(std::getenv(name) == nullptr) {
    if (is_ours_) ::setenv(name, value, 0);
  }
  ~PassingVariable() {
    if (is_ours_) ::unsetenv(name_);
  }
  PassingVariable(const PassingVariable&) = delete;
  PassingVariable& operator=(const PassingVariable&) = delete;

 private:
  const char* name_;
  bool is_ours_;
};

/// Lets this thread's sleeps last longer during MPI_Init and MPI_Finalize if the ranks of the node share processors.
/// Open MPI waits there for other processes by polling every 100 us. With many ranks on a processor, their polls would
/// take all its time, also from the launcher that they wait for. With the longer sleeps, the ranks of a processor
/// together poll once per 100 us.
class RareWaking {
 public:
  RareWaking() : usual_(::prctl(PR_GET_TIMERSLACK)) {
    const std::size_t ranks = launched_ranks_of_node(process_environment), processors = available_processors().count();
    if (usual_ > 0 && processors > 0 && ranks > processors) {
      ::prctl(PR_SET_TIMERSLACK, poll_interval * ranks / processors);
    }
  }
  ~RareWaking() {
    if (usual_ > 0) ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(usual_));
  }
  RareWaking(const RareWaking&) = delete;
  RareWaking& operator=(const RareWaking&) = delete;

 private:
  static constexpr unsigned long poll_interval = 100'000;  ///< ns
  int usual_;                                              ///< ns
};

/// Only host memory is passed to MPI. Cray MPICH with support for GPUs ends every rank in MPI_Init if the program is
/// not linked with its GTL library.
void keep_device_memory_from_mpi() {
  const char* const kept = process_environment("MYLOS_KEEP_MPICH_GPU_SUPPORT");
  if (process_environment("MPICH_GPU_SUPPORT_ENABLED") == nullptr || (kept != nullptr && kept == std::string_view("1")))
    return;
  ::setenv("MPICH_GPU_SUPPORT_ENABLED", "0", 1);
}

class MpiRuntime final : public RankRuntime {
 public:
  explicit MpiRuntime(std::chrono::duration<double> limit) : limit_(limit) {
    // Without this, a process that no launcher started would start an Open MPI daemon that is not needed here.
    ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    // All such processes of a user would share one session directory in Open MPI 4. One that ends removes it while
    // another creates its own in it, whose MPI_Init then aborts.
    std::optional<PassingVariable> no_directories;
    if (!is_launched(process_environment)) no_directories.emplace("OMPI_MCA_orte_create_session_dirs", "0");
    keep_device_memory_from_mpi();
    const RareWaking rare;
    // Files may be written through MPI while the communication thread calls it. The minimum requirement is that a
    // thread other than the first may call MPI.
    make("MPI_Init", [&] { return MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided_); });
    if (provided_ < MPI_THREAD_SERIALIZED) {
      finalize();
      fail(
          "MPI was built for one thread a process, and Mylos calls it from a second one: use an MPI that gives "
          "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
    }
    make("MPI_Comm_dup", [&] { return MPI_Comm_dup(MPI_COMM_WORLD, &ranks_); });
    group_ = make_mpi_group(ranks_);
  }
  ~MpiRuntime() override {
    int ended = 0;
    if (!context_ && MPI_Finalized(&ended) == MPI_SUCCESS && ended == 0) end_mpi();
  }
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  std::string library() const override { return library_version(); }
  std::string thread_level() const override {
    return provided_ == MPI_THREAD_MULTIPLE ? "MPI_THREAD_MULTIPLE" : "MPI_THREAD_SERIALIZED";
  }
  std::size_t rank() const override { return group_.rank; }
  std::size_t size() const override { return group_.size; }

  std::size_t first_rank_of_node() const override {
    MPI_Comm node = MPI_COMM_NULL;
    const int key = static_cast<int>(rank());
    make("MPI_Comm_split_type",
         [&] { return MPI_Comm_split_type(ranks_, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, &node); });
    int first = key;
    make("MPI_Bcast", [&] { return MPI_Bcast(&first, 1, MPI_INT, 0, node); });
    make("MPI_Comm_free", [&] { return MPI_Comm_free(&node); });
    return static_cast<std::size_t>(first);
  }

  std::vector<std::byte> gather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all(mine.size() * size());
    const int count = static_cast<int>(mine.size());
    make("MPI_Allgather",
         [&] { return MPI_Allgather(mine.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, ranks_); });
    return all;
  }

  bool send(std::span<const std::byte> message, std::size_t to, std::chrono::duration<double> limit) override {
    // The memory is kept if the message is never received.
    sent_.emplace_back(message.begin(), message.end());
    MPI_Request request = MPI_REQUEST_NULL;
    const int count = static_cast<int>(message.size()), receiver = static_cast<int>(to);
    MYLOS_CHECK_MPI(MPI_Isend(sent_.back().data(), count, MPI_BYTE, receiver, 0, ranks_, &request));
    int taken = 0;
    poll(limit, [&] {
      MYLOS_CHECK_MPI(MPI_Test(&request, &taken, MPI_STATUS_IGNORE));
      return taken != 0;
    });
    if (taken != 0) sent_.pop_back();
    return taken != 0;
  }

  std::optional<std::vector<std::byte>> receive(std::size_t from, std::chrono::duration<double> limit) override {
    int there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    poll(limit, [&] {
      MYLOS_CHECK_MPI(MPI_Improbe(static_cast<int>(from), 0, ranks_, &there, &message, &status));
      return there != 0;
    });
    if (there == 0) return std::nullopt;
    int count = 0;
    MYLOS_CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    MYLOS_CHECK_MPI(MPI_Mrecv(bytes.data(), count, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    return bytes;
  }

  Communicator& start(const std::vector<RankPlacement>& placements, std::span<const NodePeer> neighbours,
                      std::size_t ranks_a_processor) override {
    // A group of one needs no communication thread.
    if (size() == 1) {
      alone_ = make_self_communicator();
      return *alone_;
    }
    watch_ = std::make_unique<MpiWatch>(group_with(watch_tag), placements, neighbours);
    watch_->set_time_limit(limit_);
    std::vector<std::size_t> nodes;
    for (const RankPlacement& placement : placements) nodes.push_back(placement.node);
    start_thread(nodes);
    context_->thread.set_ranks_a_processor(ranks_a_processor);
    context_->thread.set_watch(watch_.get());
    return *world_;
  }

  std::unique_ptr<Communicator> make_nccl_ranks(const DeviceSums& sums) override {
    if (const std::string obstacle = nccl_obstacle(); !obstacle.empty()) fail(obstacle);
    if (!context_) start_thread({0});
    return make_nccl_communicator(*context_, world_, sums);
  }

  void set_time_limit(std::chrono::duration<double> limit) override {
    limit_ = limit;
    if (watch_) watch_->set_time_limit(limit);
    if (context_) context_->limit = limit;
  }
  void note_step(std::size_t step) override {
    if (watch_) watch_->note_step(step);
  }

  bool announce_error() override { return !watch_ || watch_->announce_error(); }

  void finish(int exit_code) override {
    if (context_) {
      world_->barrier("the end of the program");
      context_->thread.finish();
    }
    exit_code_ = exit_code;
    end_mpi();
  }

  void abandon() override {
    if (context_ && !all_say_farewell()) {
      context_->thread.abandon();
      return;
    }
    if (context_) context_->thread.finish();
    end_mpi();
  }

 private:
  /// Makes a call that waits for other ranks inside MPI, where no communication thread can look for missing ranks. If
  /// it takes too long, a thread that calls no MPI ends this process with one line, and the launcher ends the others.
  template <class Call>
  int call_within_limit(const char* name, const Call& call) const {
    const std::size_t rank = launched_rank(process_environment), ranks = launched_ranks(process_environment);
    const double seconds = limit_.count() + start_time + start_time_per_rank * static_cast<double>(ranks) +
                           next_tells * static_cast<double>(std::min(rank, last_to_tell + 1));
    return call_within(
        seconds, [=, this] { end_late(name, seconds, rank); }, call);
  }
  [[noreturn]] void end_late(const char* name, double seconds, std::size_t rank) const {
    std::string why = fmt::format(
        "another rank has not reached it, or MPI or the network between nodes hangs; a longer {} would wait",
        setting("collective-timeout"));
    if (exit_code_) {
      why = fmt::format("all ranks have completed their work, so this one ends with exit code {}", *exit_code_);
      try {
        flush_output();
      } catch (...) {
        std::_Exit(1);
      }
    }
    if (rank <= last_to_tell) {
      log_line(fmt::format("mylos: {}rank {}: {} has not returned for {:.0f} s: {}", exit_code_ ? "" : "error: ", rank,
                           name, seconds, why));
    }
    std::_Exit(exit_code_.value_or(1));
  }
  /// The same. Errors: those of check_mpi.
  template <class Call>
  void make(const char* name, const Call& call) const {
    check_mpi(call_within_limit(name, call), name);
  }
  void finalize() const {
    const RareWaking rare;
    call_within_limit("MPI_Finalize", [] { return MPI_Finalize(); });
  }

  MpiGroup group_with(int tag) const {
    MpiGroup group = group_;
    group.tag = tag;
    return group;
  }

  /// `nodes`: the node of each rank.
  void start_thread(const std::vector<std::size_t>& nodes) {
    context_ = std::make_unique<MpiContext>();
    context_->limit = limit_;
    world_ = make_mpi_communicator(*context_, group_, 1, nodes);
  }

  /// Waits for all ranks for a short time. They all come here if all met the same error; MPI can then end normally.
  bool all_say_farewell() {
    // Uses a group of its own, because other ranks may be in another operation of the world.
    const auto barrier = std::make_shared<Barrier>(OperationName{"farewell", 0, 0, 0}, group_with(farewell_tag));
    context_->thread.submit(barrier);
    const auto end = std::chrono::steady_clock::now() + farewell;
    while (!barrier->done() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return barrier->done() && !barrier->failed();
  }

  void end_mpi() {
    call_within_limit("MPI_Comm_free", [&] { return MPI_Comm_free(&ranks_); });
    finalize();
  }

  std::chrono::duration<double> limit_;  ///< how long this rank waits for others
  std::optional<int> exit_code_;         ///< since when nothing can fail any more: a call that hangs ends with this
  MPI_Comm ranks_ = MPI_COMM_NULL;
  MpiGroup group_;
  int provided_ = MPI_THREAD_SINGLE;
  std::list<std::vector<std::byte>> sent_;  ///< messages not received yet
  std::unique_ptr<MpiWatch> watch_;
  std::unique_ptr<MpiContext> context_;
  std::unique_ptr<Communicator> alone_;  ///< the world of a single rank
  std::shared_ptr<MpiRanks> world_;      ///< the world of several ranks, or the group of one for NCCL
};

}  // namespace

bool has_mpi() { return true; }

std::unique_ptr<RankRuntime> make_rank_runtime(std::chrono::duration<double> limit) {
  return std::make_unique<MpiRuntime>(limit);
}

}  // namespace mylos::parallel
