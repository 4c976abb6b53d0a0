#include "app/doctor/doctor_checks.hpp"

#include "app/program/compute.hpp"
#include "core/base/process/control_group.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "core/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <set>

namespace mylos::app {
namespace {

constexpr const char* own_processors = "srun --cpus-per-task=N; mpirun --map-by slot:PE=N --bind-to core";

/// Returns the number of cores of the processors; 0 if the system does not report them.
std::size_t count_cores(const Processors& processors) {
  std::set<std::string> siblings;
  for (std::size_t i = 0; i < processors.size(); ++i) {
    if (!processors[i]) continue;
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", i));
    std::string text;
    if (!std::getline(file, text)) return 0;
    siblings.insert(text);
  }
  return siblings.size();
}

bool binds(const std::string& binding) {
  std::string word = binding;
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return !word.empty() && word != "false" && word != "disabled";
}

/// Checks one rank by itself.
Findings own_findings(const ProcessorFacts& facts, std::size_t threads) {
  Findings findings;
  const std::size_t processors = facts.allowed.count();
  findings.push_back(
      {Level::ok, "processors",
       fmt::format(
           "{}{}", count_of(processors, "processor"),
           facts.cores > 0 && facts.cores != processors ? fmt::format(" on {}", count_of(facts.cores, "core")) : "")});
  if (!facts.threads_error.empty()) {
    findings.push_back({Level::error, "threads", facts.threads_error, "set it to the number of threads per rank"});
    return findings;
  }
  const std::string count = count_of(threads, "thread");
  // If the first thread is bound, the processors that the rank may use are not visible.
  const bool is_bound = binds(facts.binding);
  const bool has_too_many = !is_bound && threads > processors;
  const bool shares_cores = !is_bound && !has_too_many && facts.cores > 0 && threads > facts.cores;
  if (has_too_many) {
    findings.push_back(
        {Level::warning, "threads", fmt::format("{} on {}", count, count_of(processors, "processor")),
         fmt::format("set OMP_NUM_THREADS={}, or give each rank more processors ({})", processors, own_processors)});
  } else if (shares_cores) {
    findings.push_back(
        {Level::warning, "threads", fmt::format("{} on {}", count, count_of(facts.cores, "core")),
         fmt::format("hardware threads of a core share its arithmetic units: OMP_NUM_THREADS={} is often faster "
                     "(srun --hint=nomultithread)",
                     facts.cores)});
  } else {
    findings.push_back({Level::ok, "threads", fmt::format("{} a rank", count)});
  }
  if (facts.quota > 0.0 && static_cast<double>(threads) > facts.quota + 0.01) {
    findings.push_back({Level::warning, "threads",
                        fmt::format("{}, but the control group has the time of {:.3g} processors", count, facts.quota),
                        "use fewer threads (OMP_NUM_THREADS), or ask for more processors"});
  }
  return findings;
}

/// Adds findings on ranks whose threads share processors, although each rank alone has enough.
void add_shared(std::span<const ProcessorFacts> node, std::size_t index, std::size_t all_threads, Findings& findings) {
  Processors together;
  bool overlaps = false;
  for (std::size_t i = 0; i < node.size(); ++i) {
    together |= node[i].allowed;
    overlaps = overlaps || (i != index && (node[i].allowed & node[index].allowed).any());
  }
  if (!overlaps) return;
  if (binds(node[index].binding)) {
    findings.push_back({Level::warning, "threads",
                        fmt::format("OMP_PROC_BIND={} with processors that other ranks may use too: each rank binds "
                                    "its first thread to the first of them",
                                    node[index].binding),
                        fmt::format("unset OMP_PROC_BIND, or give each rank its own ({})", own_processors)});
  }
  if (!binds(node[index].binding) && all_threads > together.count()) {
    findings.push_back(
        {Level::warning, "threads",
         fmt::format("{} of {} on {} of the node", count_of(all_threads, "thread"), count_of(node.size(), "rank"),
                     count_of(together.count(), "processor")),
         together.count() < node.size()
             ? std::string("start fewer ranks on a node")
             : fmt::format("set OMP_NUM_THREADS={}, or start fewer ranks on a node", together.count() / node.size())});
  }
}

}  // namespace

ProcessorFacts processor_facts(const std::string& host) {
  ProcessorFacts facts{.host = host, .allowed = allowed_processors(), .available = available_processors()};
  facts.cores = count_cores(facts.allowed);
  facts.quota = processor_quota().value_or(0.0);
  if (const char* binding = std::getenv("OMP_PROC_BIND")) facts.binding = binding;
  try {
    facts.asked_threads = threads_from_environment();
  } catch (const std::exception& error) {
    facts.threads_error = error.what();
  }
  return facts;
}

std::vector<Findings> processor_findings(std::span<const ProcessorFacts> node) {
  std::vector<Processors> allowed;
  for (const ProcessorFacts& each : node) allowed.push_back(each.allowed);
  std::vector<std::size_t> threads;
  for (std::size_t i = 0; i < node.size(); ++i) {
    const std::size_t asked = node[i].asked_threads;
    threads.push_back(asked > 0 ? asked : share_of_processors(allowed, i));
  }
  std::size_t all_threads = 0;
  for (const std::size_t each : threads) all_threads += each;
  std::vector<Findings> findings;
  for (std::size_t i = 0; i < node.size(); ++i) {
    findings.push_back(own_findings(node[i], threads[i]));
    if (runs_on_host) add_shared(node, i, all_threads, findings.back());
  }
  return findings;
}

Findings pinning_findings(std::span<const ProcessorFacts> node, std::span<const std::size_t> ranks) {
  std::vector<Processors> allowed;
  for (const ProcessorFacts& each : node) allowed.push_back(each.allowed);
  try {
    check_pinning(allowed, node.front().available, ranks, node.front().host);
    return {};
  } catch (const std::exception& error) {
    const std::string text = error.what();
    const std::size_t colon = std::min(text.find(": "), text.size());
    if (std::ranges::any_of(node, [](const ProcessorFacts& each) { return binds(each.binding); })) {
      return {{Level::error, "processors", text.substr(0, colon) + ", because OMP_PROC_BIND binds their first threads",
               fmt::format("unset OMP_PROC_BIND, or give each rank its own processors ({})", own_processors)}};
    }
    return {{Level::error, "processors", text.substr(0, colon), text.substr(std::min(colon + 2, text.size()))}};
  }
}

Findings load_findings(const NodeLoad& load) {
  const std::string busy = busy_text(load);
  if (busy.empty()) return {{Level::ok, "load", "no more threads of other programs than processors"}};
  return {{Level::warning, "load", busy,
           "steps take longer until those have ended; OMP_WAIT_POLICY=passive reduces the loss"}};
}

Findings instruction_findings(std::span<const std::string> built, std::span<const std::string> present) {
  Findings findings;
  const auto has = [](std::span<const std::string> names, const char* name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const char* name : {"avx512f", "avx2"}) {
    if (!has(present, name)) continue;
    if (has(built, name)) {
      findings.push_back({Level::ok, "program", fmt::format("instructions up to {}", name)});
    } else {
      findings.push_back(
          {runs_on_host ? Level::warning : Level::ok, "program",
           fmt::format("the CPU has {}, but this build does not use it", name),
           "build on a node of that kind with -DMYLOS_ENABLE_NATIVE=ON, or with Spack's target= for it"});
    }
    break;
  }
  const std::string remark = precision_remark(Precision::bfloat16, present);
  if (runs_on_host && !remark.empty()) findings.push_back({Level::ok, "program", remark});
  return findings;
}

Findings openblas_findings(const OpenBlasChoice& choice) {
  if (choice.kernels.empty()) return {};
  const std::string use = fmt::format("uses its kernels for {}", choice.kernels);
  const std::string slow = fmt::format("{}, a CPU without AVX", use);
  const bool is_slow = !choice.better.empty();
  if (!choice.of_user.empty()) {
    const std::string user = "OPENBLAS_CORETYPE=" + printable(choice.of_user);
    if (!is_slow) return {{Level::ok, "OpenBLAS", fmt::format("{}, because {} is set", use, user)}};
    return {{Level::warning, "OpenBLAS", fmt::format("{}, because {} is set", slow, user),
             fmt::format("unset it, or set it to {}", choice.better)}};
  }
  if (!choice.of_program.empty()) {
    const std::string told =
        fmt::format("does not recognise this CPU, and was told to use its kernels for {}", choice.of_program);
    if (!is_slow) return {{Level::ok, "OpenBLAS", told}};
    return {{Level::warning, "OpenBLAS", fmt::format("{}, but {}", told, slow), "install a newer OpenBLAS"}};
  }
  if (!is_slow) return {{Level::ok, "OpenBLAS", use}};
  return {{Level::warning, "OpenBLAS", "does not recognise this CPU, and " + slow,
           fmt::format("set OPENBLAS_CORETYPE={}", choice.better)}};
}

}  // namespace mylos::app
