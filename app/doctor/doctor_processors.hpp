#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/base/processors.hpp"

#include <optional>
#include <span>
#include <string>

/// Threads, and the processors that they run on.
namespace mylos::app {

/// Of one rank.
struct ProcessorFacts {
  std::string host = {};
  Processors allowed = {}, available = {};
  std::size_t cores = 0;             ///< that `allowed` lie on; 0 = not known
  std::size_t asked_threads = 0;     ///< OMP_NUM_THREADS; 0 = not set
  std::string threads_error = {};    ///< why that is no number of threads
  std::string binding = {};          ///< OMP_PROC_BIND
  std::optional<double> quota = {};  ///< processors' worth of time that its control group leaves it
};
ProcessorFacts processor_facts(const std::string& host);

/// Of the ranks of one node, in order: for each its findings,
std::vector<Findings> processor_findings(std::span<const ProcessorFacts> node);
/// and what train would refuse. `ranks`: which of the world they are.
Findings pinning_findings(std::span<const ProcessorFacts> node, std::span<const std::size_t> ranks);

/// The CPU's instructions beside those of the build. `built` and `present` are names of features.
Findings instruction_findings(std::span<const std::string> built, std::span<const std::string> present);

nlohmann::json to_json(const ProcessorFacts& facts);
ProcessorFacts processor_facts_of(const nlohmann::json& value);

}  // namespace mylos::app
