#include "app/doctor/doctor_ranks.hpp"
#include "app/program/exit_codes.hpp"
#include "app/run_commands.hpp"
#include "core/base/files/json.hpp"
#include "core/base/median.hpp"
#include "core/base/options/walltime.hpp"
#include "core/base/process/process.hpp"
#include "core/base/process/watchdog.hpp"
#include "core/base/stopwatch.hpp"
#include "core/base/text/standard_output.hpp"
#include "parallel/launch/launcher.hpp"
#include "parallel/launch/rank_runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

/// mylos doctor: finds problems of this environment. Checks that may hang run on a thread that is abandoned after a
/// time limit, and no rank waits for another without a limit. Kokkos is not started, so that doctor also runs if GPUs
/// or their driver are missing.
namespace mylos::app {
namespace {

using nlohmann::json;
using Seconds = std::chrono::duration<double>;

/// Exits without the steps that may hang: joining abandoned threads, and finalizing MPI if ranks are missing.
[[noreturn]] void leave(int exit_code) {
  remove_scraps();
  std::_Exit(exit_code);
}

/// Returns the rank of this process according to its launcher, which is known before MPI starts.
std::size_t launched_rank() { return parallel::launched_rank(parallel::process_environment); }

/// Returns for each rank the lowest rank on its node. Collective.
std::vector<std::size_t> gather_first_of_node(parallel::RankRuntime& runtime) {
  const std::size_t first = runtime.first_rank_of_node();
  const std::vector<std::byte> all = runtime.gather(std::as_bytes(std::span(&first, 1)));
  std::vector<std::size_t> first_of_node(runtime.size());
  std::memcpy(first_of_node.data(), all.data(), all.size());
  return first_of_node;
}

NodePosition position_of(std::size_t rank, std::span<const std::size_t> first_of_node) {
  const std::size_t first = first_of_node[rank];
  return {.rank_of_node = static_cast<std::size_t>(std::ranges::count(first_of_node.first(rank), first)),
          .ranks_of_node = static_cast<std::size_t>(std::ranges::count(first_of_node, first))};
}

/// Reports the median of several exchanges, after one that sets up connections. Collective.
Findings time_exchange(parallel::RankRuntime& runtime, std::size_t nodes) {
  constexpr std::size_t repeats = 5, long_bytes = std::size_t{64} << 10, most_bytes = std::size_t{64} << 20;
  const std::size_t longer = std::clamp<std::size_t>(most_bytes / runtime.size(), 8, long_bytes);
  const auto time_gather = [&](std::size_t bytes) {
    const std::vector<std::byte> mine(bytes);
    runtime.gather(mine);
    std::vector<double> seconds;
    for (std::size_t i = 0; i < repeats; ++i) {
      const Stopwatch watch;
      runtime.gather(mine);
      seconds.push_back(watch.seconds());
    }
    return median(std::move(seconds));
  };
  const double shortest = time_gather(8), longest = time_gather(longer);
  return exchange_findings(runtime.size(), nodes, shortest, longest, longer);
}

class Doctor {
 public:
  explicit Doctor(const Arguments& arguments)
      : arguments_(arguments),
        checks_(arguments.collective_timeout),
        host_(parallel::node_name(parallel::process_environment, host_name())) {}

  /// Returns the exit code.
  int run();

 private:
  double limit() const { return checks_.limit(); }
  double whole_limit() const { return 8.0 * limit() + 60.0; }
  int report_alone(Findings findings, const Finding& more) const;
  int look_together(Findings findings, std::vector<std::size_t> first_of_node);
  std::string write_shared_file(Findings& findings);
  json broadcast_plan(DoctorRanks& ranks, const std::string& probe) const;
  void exchange(Picture& picture);
  Findings look_at_output(bool is_first_of_node, const std::string& probe, const std::string& writer);
  int conclude(const Picture& picture) const;
  int agree_on_end(DoctorRanks& ranks, int exit_code) const;
  void say(std::size_t rank, const std::string& error) const;
  [[noreturn]] void leave_with(const std::string& error) const;

  const Arguments& arguments_;
  LimitedChecks checks_;
  std::string host_;
  std::filesystem::path directory_;  ///< directory to test; empty if there is none
  std::unique_ptr<parallel::RankRuntime> runtime_;
};

/// Reports if MPI cannot be used: the first of the launched processes prints the report. The others print their errors
/// after a delay that gives the first one time to finish, because it may be the one that is lost.
int Doctor::report_alone(Findings findings, const Finding& more) const {
  findings.push_back(more);
  const std::size_t rank = launched_rank();
  if (rank == 0) return conclude({.first_of_node = {0}, .of_ranks = {std::move(findings)}, .of_launch = {}});
  std::this_thread::sleep_for(std::chrono::seconds(2));
  for (const Finding& each : findings) {
    if (each.level == Level::error) say(rank, fmt::format("{}: {}; {}", each.name, each.text, each.advice));
  }
  return failure;
}

/// Writes the file by which other ranks check that they see the same directory. Returns its name; empty if there are
/// no other ranks, or if there is no directory or it does not respond.
std::string Doctor::write_shared_file(Findings& findings) {
  if (runtime_->size() == 1 || directory_.empty()) return {};
  const auto name = std::make_shared<std::string>();
  const bool is_written = checks_.run(findings, "shared", fmt::format("writing to {}", directory_.string()), 0.5,
                                      [name, directory = directory_] {
                                        *name = write_probe(directory);
                                        return Findings();
                                      });
  return is_written ? *name : "";
}

/// Broadcasts the name of the file that the first rank wrote, and the host that wrote it.
json Doctor::broadcast_plan(DoctorRanks& ranks, const std::string& probe) const {
  const json plan{{"probe", probe}, {"writer", host_}};
  const auto received = ranks.broadcast(plan.dump(-1, ' ', false, json::error_handler_t::replace));
  if (!received) leave_with(fmt::format("rank 0 did not respond for {:.3g} s", 2.0 * limit()));
  return parse_json(*received, "the plan of rank 0");
}

/// Times a collective exchange. If it hangs, the first rank reports that, and all ranks leave.
void Doctor::exchange(Picture& picture) {
  const bool is_first = runtime_->rank() == 0;
  const Watchdog exchanging(is_first ? limit() : 2.0 * limit(), [&] {
    picture.of_launch.push_back({Level::error, "MPI",
                                 fmt::format("a collective of all ranks did not finish within {:.3g} s", limit()),
                                 "a rank or the network between nodes hangs"});
    leave(is_first ? conclude(picture) : failure);
  });
  append(picture.of_launch, time_exchange(*runtime_, picture.nodes()));
}

/// The first rank of each node tries the directory. All ranks look for the file `probe`, if it is named, which the
/// first rank wrote on the node `writer`.
Findings Doctor::look_at_output(bool is_first_of_node, const std::string& probe, const std::string& writer) {
  Findings findings;
  if (directory_.empty()) return findings;
  if (is_first_of_node) {
    checks_.run(findings, "output", fmt::format("writing to {}", directory_.string()), 0.5, [directory = directory_] {
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
  const double seconds = std::min(10.0, 0.25 * limit());
  checks_.run(findings, "shared", fmt::format("looking into {}", directory_.string()), 0.5,
              [=, directory = directory_] { return probe_findings(directory, probe, writer, seconds); });
  return findings;
}

/// Prints the report. Returns the exit code.
int Doctor::conclude(const Picture& picture) const {
  const std::vector<FoldedFinding> folded = fold(picture.of_launch, picture.of_ranks);
  const std::size_t ranks = picture.of_ranks.size();
  arguments_.json ? print_indented_json(report_json(folded, ranks, picture.nodes()))
                  : print(report_text(folded, ranks));
  flush_output();
  return doctor_exit_code(folded);
}

/// Returns the first rank's exit code on all ranks. Leaves if a rank is missing.
int Doctor::agree_on_end(DoctorRanks& ranks, int exit_code) const {
  const auto end = ranks.broadcast(fmt::format("{}{}", exit_code, ranks.missing().empty() ? "" : "!"));
  if (end && !ranks.is_first()) exit_code = end->front() - '0';
  if (!end || end->ends_with('!')) leave(exit_code);
  return exit_code;
}

void Doctor::say(std::size_t rank, const std::string& error) const {
  log_line(fmt::format("mylos: error: rank {} on {}: {}", rank, host_, error));
}

void Doctor::leave_with(const std::string& error) const {
  say(runtime_->rank(), error);
  leave(failure);
}

/// Runs the checks of all ranks together. `findings` are those of this rank so far.
int Doctor::look_together(Findings findings, std::vector<std::size_t> first_of_node) {
  const std::size_t rank = runtime_->rank();
  const NodePosition position = position_of(rank, first_of_node);
  DoctorRanks ranks(*runtime_, limit());
  const RankReport mine = check_rank(checks_, position, host_, std::move(findings));
  Picture picture{std::move(first_of_node), std::vector<Findings>(runtime_->size()), {}};
  const std::vector<std::optional<std::string>> reports = ranks.collect(pack(mine));
  std::string probe;
  if (ranks.is_first()) {
    picture.take_reports(reports);
    checks_.run(picture.of_launch, "job", "asking the scheduler", 0.25,
                [] { return job_findings(parallel::process_environment, remaining_walltime()); });
    probe = write_shared_file(picture.of_ranks[0]);
  }
  const json plan = broadcast_plan(ranks, probe);
  const std::vector<ClockOffset> clocks = ranks.compare_clocks();
  // The ranks that have just answered do a collective exchange, which cannot leave out a rank.
  if (ranks.broadcast(ranks.missing().empty() ? "all" : "some") == "all") exchange(picture);
  const Findings of_files = look_at_output(position.rank_of_node == 0, plan.at("probe"), plan.at("writer"));
  const std::vector<std::optional<std::string>> files_of_ranks = ranks.collect(pack(of_files));

  int exit_code = failure;
  if (ranks.is_first()) {
    picture.take_file_findings(files_of_ranks);
    append(picture.of_launch, clock_findings(clocks));
    for (const std::size_t each : ranks.missing()) {
      picture.of_ranks[each].push_back(
          {Level::error, "launch", "did not answer in time", "it ended or hangs: see its output and the node's log"});
    }
    remove_scraps();
    exit_code = conclude(picture);
  }
  return agree_on_end(ranks, exit_code);
}

int Doctor::run() {
  Findings findings;
  directory_ = check_environment(checks_, arguments_.run.engine.output, arguments_.model, findings);
  const auto late = [this, &findings](const char* what, const char* advice) {
    return [this, &findings, what, advice] {
      leave(report_alone(
          findings, {Level::error, "MPI", fmt::format("{} did not finish within {:.3g} s", what, limit()), advice}));
    };
  };
  try {
    const Watchdog starting(limit(),
                            late("MPI's start", "use a launcher that matches it (srun --mpi=pmix, or its own mpirun)"));
    runtime_ = parallel::make_rank_runtime(Seconds(whole_limit()));  // the watchdogs here report earlier
  } catch (const std::exception& error) {
    return report_alone(std::move(findings), {Level::error, "MPI", error.what()});
  }
  const MpiFacts mpi{parallel::has_mpi(), runtime_->size(), runtime_->library(), runtime_->thread_level()};
  append(findings, launch_findings(mpi, parallel::process_environment));
  std::vector<std::size_t> first_of_node;
  {
    const Watchdog meeting(
        limit(),
        late("the first exchange between ranks",
             "nodes cannot reach each other: set the network to use (OMPI_MCA_btl_tcp_if_include, UCX_NET_DEVICES), "
             "or ask the site about firewalls"));
    first_of_node = gather_first_of_node(*runtime_);
  }
  // Processes that each believe to be the only one: only the launcher's first process prints.
  if (runtime_->size() == 1 && launched_rank() != 0) return failure;
  const Watchdog whole(whole_limit(), [this] { leave_with("doctor did not finish"); });
  int exit_code = failure;
  try {
    exit_code = look_together(std::move(findings), std::move(first_of_node));
  } catch (const std::exception& error) {
    leave_with(error.what());  // finalizing MPI would wait for the ranks that continue
  }
  {
    const Watchdog ending(limit(), [this] { leave_with("other ranks do not reach MPI_Finalize"); });
    runtime_->finish(exit_code);
  }
  if (checks_.has_left_threads()) leave(exit_code);
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
