#pragma once

#include "core/device.hpp"

#include <array>
#include <string>
#include <string_view>

/// NCCL's names, and its versions in the library's encoding: 22809 is 2.28.9. Builds without NCCL include this too, so
/// that the messages can be tested.
namespace mylos::parallel {

/// The names of a vendor's library. RCCL, for AMD GPUs, has NCCL's functions, versions and variables.
struct NcclNames {
  const char *name, *file;
  const char* plugin_prefix;           ///< NCCL_NET_PLUGIN=x names the network plugin x or <plugin_prefix>-x.so
  std::array<const char*, 2> plugins;  ///< which are looked for without this variable
  const char* modules;                 ///< which bring a plugin at computing centres
};
inline constexpr NcclNames nccl_names{
    "NCCL", "libnccl.so.2", "libnccl-net", {"libnccl-net.so", "libnccl-net-ofi.so"}, "nccl, aws-ofi-nccl"};
/// Some versions of RCCL, as those of NCCL 2.27, look for the plugin of NCCL.
inline constexpr NcclNames rccl_names{
    "RCCL", "librccl.so.1", "librccl-net", {"librccl-net.so", "libnccl-net.so"}, "aws-ofi-rccl, rccl-net-plugin"};

/// The library for this build's GPUs.
#if defined(KOKKOS_ENABLE_HIP)
inline constexpr const NcclNames& own_nccl = rccl_names;
#else
inline constexpr const NcclNames& own_nccl = nccl_names;
#endif

/// Advice in messages when NCCL cannot be used.
std::string nccl_remedy();

/// Formats a version: 22809 gives "2.28.9".
std::string nccl_version_text(int version);

/// Returns why a build for version `built` cannot use the library `file`, and what to change; empty if it can.
std::string nccl_version_obstacle(std::string_view file, int version, int built, const NcclNames& nccl = own_nccl);

/// Returns why a rank with version `mine` cannot join a group whose first rank has version `first`; empty if it can.
std::string nccl_group_obstacle(int mine, int first, const NcclNames& nccl = own_nccl);

}  // namespace mylos::parallel
