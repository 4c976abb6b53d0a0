#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/base/processors.hpp"
#include "core/kernels/openblas_kernels.hpp"

#include <optional>
#include <span>
#include <string>

/// Checks threads and the processors that they run on.
namespace mylos::app {

/// Processor information of one rank.
struct ProcessorFacts {
  std::string host = {};
  Processors allowed = {}, available = {};
  std::size_t cores = 0;             ///< cores of the `allowed` processors; 0 if unknown
  std::size_t asked_threads = 0;     ///< OMP_NUM_THREADS; 0 if not set
  std::string threads_error = {};    ///< why OMP_NUM_THREADS is not a valid number of threads
  std::string binding = {};          ///< OMP_PROC_BIND
  std::optional<double> quota = {};  ///< limit of the rank's control group, in processors
};
ProcessorFacts processor_facts(const std::string& host);

/// Returns the findings of each rank of one node, in order.
std::vector<Findings> processor_findings(std::span<const ProcessorFacts> node);
/// Reports pinning that `mylos train` would refuse. `ranks` holds the world rank of each element of `node`.
Findings pinning_findings(std::span<const ProcessorFacts> node, std::span<const std::size_t> ranks);

/// Reports whether other programs have more threads than the node has processors.
Findings load_findings(const NodeLoad& load);

/// Compares the instruction sets of the CPU with those of the build. `built` and `present` are names of CPU features.
Findings instruction_findings(std::span<const std::string> built, std::span<const std::string> present);

/// Reports which kernels OpenBLAS uses, and who chose them if it was not OpenBLAS. No finding with another BLAS.
Findings openblas_findings(const OpenBlasChoice& choice);

nlohmann::json to_json(const ProcessorFacts& facts);
ProcessorFacts processor_facts_of(const nlohmann::json& value);

}  // namespace mylos::app
