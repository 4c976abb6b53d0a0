#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "app/doctor/doctor_limits.hpp"
#include "app/doctor/doctor_picture.hpp"

#include <cstddef>
#include <filesystem>
#include <string>

/// The checks of a single rank.
namespace mylos::app {

/// The findings of a rank before MPI starts.
struct EnvironmentFindings {
  Findings findings;
  std::filesystem::path directory;  ///< existing directory to test, for the run's output; empty if there is none
};
/// Runs the checks that need no other rank. `output` and `model` are as typed.
EnvironmentFindings check_environment(LimitedChecks& checks, const std::filesystem::path& output,
                                      const std::string& model);

/// The position of a rank on its node.
struct NodePosition {
  std::size_t rank_of_node = 0, ranks_of_node = 1;
};
/// Runs the checks that depend on the rank's position on its node, called `host`. Returns the rank's report, which
/// begins with `findings`.
RankReport check_rank(LimitedChecks& checks, const NodePosition& position, const std::string& host, Findings findings);

}  // namespace mylos::app
