#include "parallel/launch/launch.hpp"

#include "core/base/error.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/process/threads.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/printable.hpp"
#include "core/kernels/products/openblas_kernels.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/nccl/nccl_communicator.hpp"
#include "parallel/launch/communicator_choice.hpp"
#include "parallel/launch/launcher.hpp"
#include "parallel/launch/rank_runtime.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

namespace mylos::parallel {
namespace {

/// A rank's location, as the ranks exchange it.
struct Station {
  std::array<char, 256> host{}, job{}, kind{};
  long process = 0;
  std::size_t first_rank_of_node = 0;
  ino_t process_namespace = 0;  ///< PID namespace of `process`; 0 if unknown
  Processors allowed, available;
};
static_assert(std::is_trivially_copyable_v<Station>);

struct Device {
  std::array<char, 64> id{};
  std::array<char, 128> name{}, kind{};
  std::array<std::uint64_t, 32> visible{};  ///< hashes of ids; 0: no more
  bool has_nccl = false;
};

/// Copies a text, cut to the available space.
template <std::size_t size>
void copy_text(const std::string& text, std::array<char, size>& to) {
  text.copy(to.data(), size - 1);
}

/// Describes what selects the kernels of this CPU.
std::string kernel_kind() {
  const std::string blas = openblas_kernels();
  return vector_instructions() + (blas.empty() ? "" : ", OpenBLAS " + blas);
}

Station this_station(const RankRuntime& runtime) {
  Station station;
  std::array<char, 256> host{};
  ::gethostname(host.data(), host.size() - 1);
  copy_text(node_name(process_environment, host.data()), station.host);
  copy_text(batch_job(process_environment), station.job);
  copy_text(kernel_kind(), station.kind);
  station.process = ::getpid();
  struct stat about {};
  if (::stat("/proc/self/ns/pid", &about) == 0) station.process_namespace = about.st_ino;
  station.first_rank_of_node = runtime.first_rank_of_node();
  station.allowed = allowed_processors();
  station.available = available_processors();
  return station;
}

std::vector<RankPlacement> placements_of(const std::vector<Station>& stations) {
  std::map<std::size_t, std::size_t> node_of_first, ranks_of_node;
  std::vector<RankPlacement> placements;
  for (const Station& station : stations) {
    // The lowest rank of a node comes before the node's other ranks.
    const std::size_t node = node_of_first.try_emplace(station.first_rank_of_node, node_of_first.size()).first->second;
    placements.push_back({.host = station.host.data(),
                          .process = station.process,
                          .node = node,
                          .rank_of_node = ranks_of_node[node]++,
                          .processors = mylos::to_string(station.allowed),
                          .job = station.job.data(),
                          .kind = station.kind.data()});
  }
  return placements;
}

/// Returns the value of each rank.
template <class Value>
std::vector<Value> gather_values(RankRuntime& runtime, const Value& mine) {
  const std::vector<std::byte> bytes = runtime.gather(std::as_bytes(std::span(&mine, 1)));
  std::vector<Value> values(runtime.size());
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Returns the ranks on the same node as `rank`, in order.
std::vector<std::size_t> neighbours(const std::vector<RankPlacement>& placements, std::size_t rank) {
  std::vector<std::size_t> ranks;
  for (std::size_t other = 0; other < placements.size(); ++other) {
    if (placements[other].node == placements[rank].node) ranks.push_back(other);
  }
  return ranks;
}

/// Returns the other ranks whose processes are visible: those on the same node and in the same PID namespace.
std::vector<NodePeer> peers_of(const std::vector<Station>& stations, std::size_t rank) {
  const Station& mine = stations[rank];
  std::vector<NodePeer> peers;
  for (std::size_t other = 0; other < stations.size(); ++other) {
    const Station& station = stations[other];
    const bool seen = station.first_rank_of_node == mine.first_rank_of_node && mine.process_namespace != 0 &&
                      station.process_namespace == mine.process_namespace;
    if (other != rank && seen) peers.push_back({other, station.process});
  }
  return peers;
}

/// Returns the number of threads requested by the user, or 0.
std::size_t asked_threads() {
  return std::string_view(ExecutionSpace::name()) == "Serial" ? 1 : threads_from_environment();
}

/// Returns asked_threads(). Errors: std::runtime_error if these and those of MPI and communication cannot be started.
std::size_t startable_threads() {
  constexpr std::size_t others = 3;  // two of Open MPI, and that of call_within, later of CommunicationThread
  const std::size_t threads = asked_threads();
  check_threads(std::max<std::size_t>(threads, 1) - 1 + others);
  return threads;
}

}  // namespace

struct Launch::State {
  explicit State(std::chrono::duration<double> limit) : runtime(make_rank_runtime(limit)) {}

  /// Initialised before MPI starts: an error on this rank alone would leave the others waiting.
  std::size_t threads = startable_threads();
  std::vector<DeviceInfo> devices = usable_devices();
  std::size_t device = 0;
  std::unique_ptr<RankRuntime> runtime;
  std::string library = runtime->library();
  std::vector<RankPlacement> placements;
  std::size_t rank = runtime->rank(), nodes = 0, ranks_of_node = 0, ranks_a_processor = 1;
  std::unique_ptr<Communicator> nccl_ranks;
  CommunicatorChoice communicator;
  Communicator* world = nullptr;
  int exit_code = 0;
};

Launch::Launch(std::chrono::duration<double> limit) : state_(std::make_unique<State>(limit)) {
  RankRuntime& runtime = *state_->runtime;
  check_launcher(runtime.size(), state_->library, process_environment);
  const std::vector<Station> stations = gather_values(runtime, this_station(runtime));
  state_->placements = placements_of(stations);
  for (const RankPlacement& placement : state_->placements) state_->nodes = std::max(state_->nodes, placement.node + 1);
  gather_devices();
  // Every rank checks all nodes, so that all ranks end with the same error.
  for (const RankPlacement& first : state_->placements) {
    if (first.rank_of_node != 0) continue;
    const auto rank = static_cast<std::size_t>(&first - state_->placements.data());
    const std::vector<std::size_t> ranks = neighbours(state_->placements, rank);
    std::vector<Processors> allowed;
    for (const std::size_t each : ranks) allowed.push_back(stations[each].allowed);
    check_pinning(allowed, stations[rank].available, ranks, first.host);
    if (first.node != placement().node) continue;
    state_->ranks_of_node = ranks.size();
    state_->ranks_a_processor = ranks_a_processor(allowed, placement().rank_of_node);
    if (state_->threads == 0) state_->threads = share_of_processors(allowed, placement().rank_of_node);
  }
  state_->world = &runtime.start(state_->placements, peers_of(stations, state_->rank), state_->ranks_a_processor);
}

Launch::~Launch() {
  state_->nccl_ranks.reset();
  if (std::uncaught_exceptions() > 0) {
    state_->runtime->abandon();
    return;
  }
  try {
    state_->runtime->finish(state_->exit_code);
  } catch (const std::exception& error) {
    // Not every rank has come to its end, so results that this rank reports would be wrong.
    fmt::print(stderr, "mylos: error: {}\n", without_controls(error.what()));
    std::_Exit(1);
  }
}

void Launch::gather_devices() {
  Device mine;
  if (!state_->devices.empty()) {
    const DeviceInfo& info = device_of_rank(state_->devices, placement().rank_of_node);
    state_->device = info.index;
    copy_text(info.id, mine.id);
    copy_text(fmt::format("GPU {} {}", info.index, info.name), mine.name);
    copy_text(info.name, mine.kind);
    for (std::size_t i = 0; i < std::min(state_->devices.size(), mine.visible.size()); ++i) {
      mine.visible[i] = std::hash<std::string>()(state_->devices[i].id);
    }
    mine.has_nccl = state_->runtime->size() > 1 && nccl_obstacle().empty();  // one rank exchanges nothing
  }
  const std::vector<Device> devices = gather_values(*state_->runtime, mine);
  for (std::size_t rank = 0; rank < devices.size(); ++rank) {
    RankPlacement& placement = state_->placements[rank];
    placement.device = devices[rank].id.data();
    placement.device_name = devices[rank].name.data();
    placement.has_nccl = devices[rank].has_nccl;
    if (!placement.device.empty()) placement.kind = devices[rank].kind.data();
    for (const std::uint64_t device : devices[rank].visible) {
      if (device != 0) placement.visible_devices.push_back(device);
    }
  }
}

Communicator& Launch::world() { return *state_->world; }

std::unique_ptr<Communicator> Launch::make_nccl_ranks(const DeviceSums& sums) {
  check_devices_apart(placements());
  return state_->runtime->make_nccl_ranks(sums);
}

CommunicatorChoice Launch::choose(std::string_view name) const {
  if (name == "mpi") return {};
  if (name == "auto") {
    check_devices_apart(placements());
    return choose_communicator(placements());
  }
  if (name != "nccl") throw SettingError("communicator", name, "it is auto, mpi or nccl");
  if (const std::string obstacle = nccl_obstacle(); !obstacle.empty()) fail(obstacle);
  check_devices_apart(placements());
  return {.nccl = true};
}

CommunicatorChoice Launch::connect_nccl(std::string_view name, const DeviceSums& sums) {
  state_->nccl_ranks = make_nccl_ranks(sums);
  std::string obstacle;
  try {
    const double bandwidth = state_->nccl_ranks->connect(ExecutionSpace());
    state_->world = state_->nccl_ranks.get();
    return nccl_choice(found_nccl_version(), bandwidth);
  } catch (const SharedError& error) {
    obstacle = error.what();
  }
  state_->nccl_ranks.reset();
  return choice_without_nccl(name, obstacle);
}

const CommunicatorChoice& Launch::use_communicator(std::string_view name, const DeviceSums& sums) {
  CommunicatorChoice choice;
  on_every_rank(world(), [&] { choice = choose(name); });
  if (choice.nccl && world().size() > 1) choice = connect_nccl(name, sums);
  state_->communicator = std::move(choice);
  return state_->communicator;
}

const CommunicatorChoice& Launch::communicator() const { return state_->communicator; }

const std::vector<RankPlacement>& Launch::placements() const { return state_->placements; }
const RankPlacement& Launch::placement() const { return state_->placements[state_->rank]; }
std::size_t Launch::nodes() const { return state_->nodes; }
std::size_t Launch::ranks_of_node() const { return state_->ranks_of_node; }
std::size_t Launch::threads() const { return state_->threads; }
std::size_t Launch::device() const { return state_->device; }
void Launch::set_time_limit(std::chrono::duration<double> limit) { state_->runtime->set_time_limit(limit); }
void Launch::set_exit_code(int exit_code) { state_->exit_code = exit_code; }
void Launch::note_step(std::size_t step) { state_->runtime->note_step(step); }
bool Launch::announce_error() { return state_->runtime->announce_error(); }
const std::string& Launch::library() const { return state_->library; }

const DeviceInfo& device_of_rank(std::span<const DeviceInfo> devices, std::size_t rank_of_node) {
  return devices[rank_of_node % devices.size()];
}

void check_devices_apart(const std::vector<RankPlacement>& placements) {
  if (std::getenv(share_gpus_variable) != nullptr) return;
  std::map<std::string, std::size_t> rank_of_device;
  for (std::size_t rank = 0; rank < placements.size(); ++rank) {
    const RankPlacement& placement = placements[rank];
    if (placement.device.empty()) continue;
    const auto [other, is_first] = rank_of_device.try_emplace(placement.device, rank);
    if (is_first) continue;
    fail(
        fmt::format("ranks {} and {} on {} compute on the same GPU ({}); start one rank per GPU (--ntasks-per-node "
                    "equal to --gpus-per-node), or let them share it with {}",
                    other->second, rank, placement.host, placement.device, setting("communicator", "mpi")));
  }
}

Mesh::Mesh(Communicator& world, std::size_t shard_size) : world_(world) {
  if (shard_size == 0 || world.size() % shard_size != 0) {
    throw SettingError("shard-size", std::to_string(shard_size),
                       fmt::format("does not divide the number of ranks, {}", world.size()));
  }
  const std::size_t group = world.rank() / shard_size, position = world.rank() % shard_size;
  shard_ = world.split(group, position);
  replicate_ = world.split(position, group);
}

void Mesh::connect(const ExecutionSpace& space) {
  // Each kind of group by itself: all ranks hear of an error in one of the groups.
  for (Communicator* const ranks : {&world_, shard_.get(), replicate_.get()}) {
    on_every_rank(world_, [&] { ranks->connect(space); });
  }
}

}  // namespace mylos::parallel
