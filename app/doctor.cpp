#include "app/doctor/doctor_files.hpp"
#include "app/doctor/doctor_finding.hpp"
#include "app/doctor/doctor_gpus.hpp"
#include "app/doctor/doctor_launch.hpp"
#include "app/doctor/doctor_processors.hpp"
#include "app/doctor/doctor_ranks.hpp"
#include "app/doctor/doctor_system.hpp"
#include "app/program/build_info.hpp"
#include "app/program/exit_codes.hpp"
#include "app/program/watchdog.hpp"
#include "app/run_commands.hpp"
#include "core/base/json.hpp"
#include "core/base/median.hpp"
#include "core/base/process.hpp"
#include "core/base/quantities.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/walltime.hpp"
#include "core/kernels/gemm.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <map>
#include <span>
#include <thread>

/// mylos doctor: finds problems of this environment. Checks that may hang run on a thread that is abandoned after a
/// time limit, and no rank waits for another without a limit. Kokkos is not started, so that doctor also runs if GPUs
/// or their driver are missing.
namespace mylos::app {
namespace {

using nlohmann::json;
using Seconds = std::chrono::duration<double>;

void append(Findings& to, Findings more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

/// The report of a rank to the first one.
struct RankReport {
  Findings findings;
  ProcessorFacts processors;
  std::string device, build;
};

std::string pack(const RankReport& report) {
  return json{{"findings", to_json(report.findings)},
              {"processors", to_json(report.processors)},
              {"device", report.device},
              {"build", report.build}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

RankReport unpack(const std::string& text) {
  const json value = parse_json(text, "the findings of a rank");
  return {findings_of(value.at("findings")), processor_facts_of(value.at("processors")), value.at("device"),
          value.at("build")};
}

/// Everything that the first rank collects.
struct Picture {
  std::vector<std::size_t> first_of_node;  ///< for each rank, the lowest rank on its node
  std::vector<Findings> of_ranks;
  Findings of_launch;
};

std::size_t count_nodes(std::span<const std::size_t> first_of_node) {
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < first_of_node.size(); ++rank) count += first_of_node[rank] == rank ? 1 : 0;
  return count;
}

class Doctor {
 public:
  explicit Doctor(const Arguments& arguments)
      : arguments_(arguments),
        limit_(arguments.collective_timeout),
        host_(parallel::node_name(parallel::process_environment, host_name())) {}

  /// Returns the exit code.
  int run();

 private:
  bool look(Findings& found, const char* name, const std::string& what, double seconds,
            std::function<Findings()> check);
  Findings look_alone();
  void find_directory(Findings& findings);
  Findings look_at_targets() const;
  Findings look_at_output(bool is_first_of_node, const std::string& probe, const std::string& writer);
  RankReport report(Findings findings) const;
  Findings time_exchange() const;
  int report_alone(Findings findings, const Finding& more) const;
  void print_report(std::span<const FoldedFinding> findings, std::size_t ranks, std::size_t nodes) const;
  void take_in(const std::vector<std::optional<std::string>>& reports, Picture& picture) const;
  void compare_nodes(const std::map<std::size_t, RankReport>& reports, Picture& picture) const;
  static void take_in_later(std::size_t rank, const Findings& findings, Picture& picture);
  int conclude(const Picture& picture) const;
  int look_together(Findings findings);
  [[noreturn]] static void leave(int exit_code);
  void say(std::size_t rank, const std::string& error) const;
  [[noreturn]] void leave_with(const std::string& error) const;

  const Arguments& arguments_;
  double limit_;  ///< seconds
  std::string host_;
  std::filesystem::path directory_;  ///< directory to test; empty if there is none
  std::unique_ptr<parallel::RankRuntime> runtime_;
  std::vector<std::size_t> first_of_node_;
  std::size_t rank_of_node_ = 0, ranks_of_node_ = 1;
  bool has_left_threads_ = false;
};

/// Runs `check` and adds its findings. If it does not return in time, adds a finding that says so and returns false.
bool Doctor::look(Findings& found, const char* name, const std::string& what, double seconds,
                  std::function<Findings()> check) {
  const auto promise = std::make_shared<std::promise<Findings>>();
  std::future<Findings> result = promise->get_future();
  std::thread([promise, name = std::string(name), check = std::move(check)] {
    try {
      promise->set_value(check());
    } catch (const std::exception& error) {
      promise->set_value({{Level::error, name, error.what()}});
    }
  }).detach();
  const bool has_come_back = result.wait_for(Seconds(seconds)) == std::future_status::ready;
  if (has_come_back) {
    append(found, result.get());
  } else {
    has_left_threads_ = true;
    found.push_back({Level::error, name, fmt::format("{} has not come back within {:.3g} s", what, seconds),
                     "a server or a device behind it does not answer: ask the site, or take another node"});
  }
  return has_come_back;
}

void Doctor::find_directory(Findings& findings) {
  const std::filesystem::path& output = arguments_.run.engine.output;
  const std::filesystem::path wanted = output.empty() ? "." : output;
  const auto target = std::make_shared<OutputTarget>();
  const bool is_found = look(findings, "output", "looking for " + wanted.string(), 0.25 * limit_, [target, wanted] {
    *target = find_output(wanted);
    return target->findings;
  });
  if (is_found) directory_ = target->directory;
}

/// Runs the checks that need no other rank.
Findings Doctor::look_alone() {
  const BuildInfo build = build_info();
  Findings findings = {
      {Level::ok, "program", fmt::format("mylos {} ({}), {}", build.version, build.commit, build.compiler)}};
  append(findings, instruction_findings(built_cpu_feature_names(), present_cpu_feature_names()));
  append(findings, limit_findings(limit_facts()));
  const char* const locking = std::getenv("HDF5_USE_FILE_LOCKING");
  append(findings, hdf5_findings(build.hdf5, build.hdf5_is_parallel,
                                 locking == nullptr ? std::nullopt : std::optional<std::string>(locking)));
  std::vector<std::string> variables;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) variables.emplace_back(*each);
  append(findings, environment_findings(variables));
  find_directory(findings);
  look(findings, "cache", "looking at the cache", 0.25 * limit_, cache_findings);
  look(findings, "model", "looking for " + arguments_.model, 0.25 * limit_,
       [model = arguments_.model] { return model_findings(model); });
  return findings;
}

/// Runs the checks that depend on the rank's position on its node.
Findings Doctor::look_at_targets() const {
  Findings findings = memory_findings(memory_facts(ranks_of_node_));
  append(findings, nccl_findings());
  if (!runs_on_host) {
    append(findings, provider_findings(built_gemm_providers(), gemm_provider_obstacle));
    append(findings, nccl_environment_findings(parallel::process_environment, names_below("/sys/class/net"),
                                               names_below("/sys/class/infiniband")));
  }

  return findings;
}

RankReport Doctor::report(Findings findings) const {
  const BuildInfo build = build_info();
  return {std::move(findings), processor_facts(host_), "",
          fmt::format("{} {} {}", build.version, build.commit, build.compiler)};
}

Findings Doctor::look_at_output(bool is_first_of_node, const std::string& probe, const std::string& writer) {
  Findings findings;
  if (directory_.empty()) return findings;
  if (is_first_of_node) {
    look(findings, "output", fmt::format("writing to {}", directory_.string()), 0.5 * limit_, [directory = directory_] {
      Findings all = directory_findings(directory);
      append(all, trial_findings(try_directory(directory)));
      return all;
    });
  }
  if (probe.empty()) return findings;
  if (runtime_->rank() == 0) {
    append(findings, probe_findings());
    return findings;
  }
  const double seconds = std::min(10.0, 0.25 * limit_);
  look(findings, "shared", fmt::format("looking into {}", directory_.string()), 0.5 * limit_,
       [=, directory = directory_] { return probe_findings(directory, probe, writer, seconds); });
  return findings;
}

/// Reports the median of several exchanges, after one that sets up connections.
Findings Doctor::time_exchange() const {
  constexpr std::size_t repeats = 5, long_bytes = std::size_t{64} << 10, most_bytes = std::size_t{64} << 20;
  const std::size_t longer = std::clamp<std::size_t>(most_bytes / runtime_->size(), 8, long_bytes);
  const auto time_gather = [&](std::size_t bytes) {
    const std::vector<std::byte> mine(bytes);
    runtime_->gather(mine);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < repeats; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      runtime_->gather(mine);
      seconds.push_back(Seconds(std::chrono::steady_clock::now() - begin).count());
    }
    return median(std::move(seconds));
  };
  const double shortest = time_gather(8), longest = time_gather(longer);
  return exchange_findings(runtime_->size(), count_nodes(first_of_node_), shortest, longest, longer);
}

void Doctor::print_report(std::span<const FoldedFinding> findings, std::size_t ranks, std::size_t nodes) const {
  if (arguments_.json) {
    print_indented_json(report_json(findings, ranks, nodes));
  } else {
    print(report_text(findings, ranks));
  }
  flush_output();
}

/// Reports if MPI cannot be used: the first of the launched processes prints the report. The others print their errors
/// after a delay that gives the first one time to finish, because it may be the one that is lost.
int Doctor::report_alone(Findings findings, const Finding& more) const {
  findings.push_back(more);
  const std::vector<FoldedFinding> folded = fold({}, std::vector<Findings>{findings});
  const std::size_t rank = parallel::launched_rank(parallel::process_environment);
  if (rank == 0) {
    print_report(folded, 1, 1);
    return doctor_exit_code(folded);
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  for (const Finding& each : findings) {
    if (each.level == Level::error) say(rank, fmt::format("{}: {}; {}", each.name, each.text, each.advice));
  }
  return doctor_exit_code(folded);
}

/// Checks the ranks of each node against each other.
void Doctor::compare_nodes(const std::map<std::size_t, RankReport>& reports, Picture& picture) const {
  std::map<std::size_t, std::vector<std::size_t>> nodes;
  for (const auto& [rank, report] : reports) nodes[picture.first_of_node[rank]].push_back(rank);
  for (const auto& [first, ranks] : nodes) {
    std::vector<ProcessorFacts> processors;
    std::vector<std::string> devices;
    for (const std::size_t rank : ranks) {
      processors.push_back(reports.at(rank).processors);
      devices.push_back(reports.at(rank).device);
    }
    std::vector<Findings> of_processors = processor_findings(processors), of_devices = shared_gpu_findings(devices);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      append(picture.of_ranks[ranks[i]], std::move(of_processors[i]));
      append(picture.of_ranks[ranks[i]], std::move(of_devices[i]));
    }
    append(picture.of_launch, pinning_findings(processors, ranks));
  }
}

void Doctor::take_in(const std::vector<std::optional<std::string>>& reports, Picture& picture) const {
  std::map<std::size_t, RankReport> present;
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    if (reports[rank]) present.emplace(rank, unpack(*reports[rank]));
  }
  for (auto& [rank, report] : present) append(picture.of_ranks[rank], report.findings);
  const auto differs = std::ranges::find_if(
      present, [&](const auto& each) { return each.second.build != present.begin()->second.build; });
  if (differs != present.end()) {
    picture.of_launch.push_back({Level::error, "program",
                                 fmt::format("rank {} runs another build than rank 0", differs->first),
                                 "start the same program on every node"});
  }
  compare_nodes(present, picture);
}

/// Applies the findings of a node's first rank about its file system to all ranks of the node.
void Doctor::take_in_later(std::size_t rank, const Findings& findings, Picture& picture) {
  for (std::size_t other = rank; other < picture.of_ranks.size(); ++other) {
    for (const Finding& each : findings) {
      const bool is_of_node = each.name == "output" && picture.first_of_node[other] == rank;
      if (other == rank || is_of_node) picture.of_ranks[other].push_back(each);
    }
  }
}

int Doctor::conclude(const Picture& picture) const {
  const std::vector<FoldedFinding> folded = fold(picture.of_launch, picture.of_ranks);
  print_report(folded, picture.of_ranks.size(), count_nodes(picture.first_of_node));
  return doctor_exit_code(folded);
}

/// Exits without the steps that may hang: joining abandoned threads, and finalizing MPI if ranks are missing.
void Doctor::leave(int exit_code) {
  remove_scraps();
  std::_Exit(exit_code);
}

void Doctor::say(std::size_t rank, const std::string& error) const {
  log_line(fmt::format("mylos: error: rank {} on {}: {}", rank, host_, error));
}

void Doctor::leave_with(const std::string& error) const {
  say(runtime_->rank(), error);
  leave(failure);
}

/// Runs the checks of all ranks together. `findings` are those of this rank so far.
int Doctor::look_together(Findings findings) {
  const std::size_t size = runtime_->size(), rank = runtime_->rank();
  DoctorRanks ranks(*runtime_, limit_);
  const GpuFacts none{.rank_of_node = rank_of_node_};
  const auto gpus = std::make_shared<GpuFacts>(none);
  const bool has_gpu_facts = look(findings, "GPU", "asking for GPUs", 0.25 * limit_, [gpus] {
    *gpus = gpu_facts(gpus->rank_of_node);
    return gpu_findings(*gpus);
  });
  append(findings, look_at_targets());
  RankReport mine = report(std::move(findings));
  if (has_gpu_facts && own_device(*gpus) != nullptr) mine.device = own_device(*gpus)->id;

  Picture picture{first_of_node_, std::vector<Findings>(size), {}};
  const std::vector<std::optional<std::string>> reports = ranks.collect(pack(mine));
  std::shared_ptr<SharedProbe> probe;
  json plan;
  if (rank == 0) {
    take_in(reports, picture);
    look(picture.of_launch, "job", "asking the scheduler", 0.25 * limit_,
         [] { return job_findings(parallel::process_environment, remaining_walltime()); });
    const auto made = std::make_shared<std::shared_ptr<SharedProbe>>();
    const bool writes = size > 1 && !directory_.empty();
    if (writes && look(picture.of_ranks[0], "shared", fmt::format("writing to {}", directory_.string()), 0.5 * limit_,
                       [made, directory = directory_] {
                         *made = std::make_shared<SharedProbe>(directory);
                         return Findings();
                       })) {
      probe = *made;
    }
    plan = {{"probe", probe ? probe->name() : ""}, {"writer", host_}};
  }
  const auto configured = ranks.tell(plan.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!configured) leave_with(fmt::format("the first rank said nothing for {:.3g} s", 2.0 * limit_));
  plan = parse_json(*configured, "the plan of rank 0");
  Findings later;
  const std::vector<ClockOffset> clocks = ranks.compare_clocks();
  // The ranks that have just answered do a collective exchange, which cannot leave out a rank.
  const auto complete = ranks.tell(ranks.missing().empty() ? "all" : "some");
  if (complete == "all") {
    const Watchdog exchanging(rank == 0 ? limit_ : 2.0 * limit_, [&] {
      picture.of_launch.push_back({Level::error, "MPI",
                                   fmt::format("an exchange of all ranks has not come back within {:.3g} s", limit_),
                                   "a rank hangs, or the network between nodes does"});
      leave(rank == 0 ? conclude(picture) : failure);
    });
    append(picture.of_launch, time_exchange());
  }
  append(later, look_at_output(first_of_node_[rank] == rank, plan.at("probe"), plan.at("writer")));
  const std::vector<std::optional<std::string>> rest =
      ranks.collect(to_json(later).dump(-1, ' ', false, json::error_handler_t::replace));

  int exit_code = failure;
  if (rank == 0) {
    for (std::size_t each = 0; each < rest.size(); ++each) {
      if (rest[each]) take_in_later(each, findings_of(parse_json(*rest[each], "the findings of a rank")), picture);
    }
    append(picture.of_launch, clock_findings(clocks));
    for (const std::size_t each : ranks.missing()) {
      picture.of_ranks[each].push_back(
          {Level::error, "launch", "did not answer in time", "it ended or hangs: see its output and the node's log"});
    }
    probe.reset();
    exit_code = conclude(picture);
  }
  const auto end = ranks.tell(fmt::format("{}{}", exit_code, ranks.missing().empty() ? "" : "!"));
  if (end && rank != 0) exit_code = end->front() - '0';
  if (!end || end->ends_with('!')) leave(exit_code);
  return exit_code;
}

int Doctor::run() {
  Findings findings = look_alone();
  const auto late = [&](const char* what, const char* advice) {
    return [this, &findings, what, advice] {
      leave(report_alone(
          findings, {Level::error, "MPI", fmt::format("{} has not come back within {:.3g} s", what, limit_), advice}));
    };
  };
  try {
    const Watchdog starting(limit_,
                            late("MPI's start", "ask for a launcher that fits it (srun --mpi=pmix, its own mpirun)"));
    runtime_ = parallel::make_rank_runtime();
  } catch (const std::exception& error) {
    return report_alone(std::move(findings), {Level::error, "MPI", error.what()});
  }
  const MpiFacts mpi{parallel::has_mpi(), runtime_->size(), runtime_->library(), runtime_->thread_level()};
  append(findings, launch_findings(mpi, parallel::process_environment));
  {
    const Watchdog meeting(
        limit_,
        late("the first exchange between ranks",
             "nodes do not reach each other: name the network to use (OMPI_MCA_btl_tcp_if_include, UCX_NET_DEVICES), "
             "or ask the site about firewalls"));
    const std::size_t first = runtime_->first_rank_of_node();
    const std::vector<std::byte> all = runtime_->gather(std::as_bytes(std::span(&first, 1)));
    first_of_node_.resize(runtime_->size());
    std::memcpy(first_of_node_.data(), all.data(), all.size());
  }
  const auto mine = first_of_node_.begin() + static_cast<std::ptrdiff_t>(runtime_->rank());
  rank_of_node_ = static_cast<std::size_t>(std::count(first_of_node_.begin(), mine, *mine));
  ranks_of_node_ = static_cast<std::size_t>(std::ranges::count(first_of_node_, *mine));
  // Processes that each believe to be the only one: only the launcher's first process prints.
  const bool is_silent = runtime_->size() == 1 && parallel::launched_rank(parallel::process_environment) != 0;
  if (is_silent) return failure;
  const Watchdog whole(8.0 * limit_ + 60.0, [this] { leave_with("doctor has not come to its end"); });
  int exit_code = failure;
  try {
    exit_code = look_together(std::move(findings));
  } catch (const std::exception& error) {
    leave_with(error.what());  // finalizing MPI would wait for the ranks that continue
  }
  {
    const Watchdog ending(limit_, [this] { leave_with("other ranks do not come to the end of MPI"); });
    runtime_->finish();
  }
  if (has_left_threads_) leave(exit_code);
  return exit_code;
}

}  // namespace

int run_doctor(const Arguments& arguments) {
  const ScrapGuard removes_files;
  Doctor doctor(arguments);
  const int exit_code = doctor.run();
  flush_output();
  return exit_code;
}

}  // namespace mylos::app
