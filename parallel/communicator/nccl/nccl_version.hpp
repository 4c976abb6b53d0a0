#pragma once

#include <string>
#include <string_view>

/// NCCL versions, in the library's encoding: 22809 is 2.28.9. Builds without NCCL include this too, so that the
/// messages can be tested.
namespace mylos::parallel {

/// Advice in messages when NCCL cannot be used.
std::string nccl_remedy();

/// Formats a version: 22809 gives "2.28.9".
std::string nccl_version_text(int version);

/// Returns why a build for version `built` cannot use the library `file`, and what to change; empty if it can.
std::string nccl_version_obstacle(std::string_view file, int version, int built);

/// Returns why a rank with version `mine` cannot join a group whose first rank has version `first`; empty if it can.
std::string nccl_group_obstacle(int mine, int first);

}  // namespace mylos::parallel
