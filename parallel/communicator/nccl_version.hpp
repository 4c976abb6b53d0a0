#pragma once

#include <string>
#include <string_view>

/// Versions of NCCL, as numbers that it gives: 22809 is 2.28.9. In builds without it too, so that what is said of them
/// can be tested.
namespace mylos::parallel {

/// What to do where NCCL does not serve.
inline constexpr const char* nccl_remedy = "or let device arrays go through MPI with --communicator mpi";

/// "2.28.9" of 22809.
std::string nccl_version_text(int version);

/// Why a build for version `built` cannot use that of `file`, and what to change; empty where it can.
std::string nccl_version_obstacle(std::string_view file, int version, int built);

/// Why a rank with version `mine` cannot join a group whose first rank has `first`; empty where it can.
std::string nccl_group_obstacle(int mine, int first);

}  // namespace mylos::parallel
