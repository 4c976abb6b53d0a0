#pragma once

#include "core/gpu_runtime.hpp"

#if defined(KOKKOS_ENABLE_HIP)
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

#include <string>
#include <string_view>

namespace mylos::parallel {

/// The NCCL functions used here, with their names in NcclLibrary.
#define MYLOS_NCCL_FUNCTIONS(X)                  \
  X(get_version, ncclGetVersion)                 \
  X(get_unique_id, ncclGetUniqueId)              \
  X(comm_init, ncclCommInitRankConfig)           \
  X(comm_finalize, ncclCommFinalize)             \
  X(comm_destroy, ncclCommDestroy)               \
  X(comm_abort, ncclCommAbort)                   \
  X(comm_get_async_error, ncclCommGetAsyncError) \
  X(get_error_string, ncclGetErrorString)        \
  X(get_last_error, ncclGetLastError)            \
  X(group_start, ncclGroupStart)                 \
  X(group_end, ncclGroupEnd)                     \
  X(send, ncclSend)                              \
  X(receive, ncclRecv)                           \
  X(all_reduce, ncclAllReduce)                   \
  X(reduce_scatter, ncclReduceScatter)           \
  X(all_gather, ncclAllGather)                   \
  X(broadcast, ncclBroadcast)

/// Function pointers of NCCL. The library is loaded on first use, so the program starts on machines without it.
struct NcclLibrary {
#define MYLOS_NCCL_MEMBER(member, function) decltype(&::function) member = nullptr;
  MYLOS_NCCL_FUNCTIONS(MYLOS_NCCL_MEMBER)
#undef MYLOS_NCCL_MEMBER
  int version = 0;  ///< 22809 means 2.28.9
};

/// Loads `file` with the system's dynamic loader; it stays open. Errors: std::runtime_error that says what to change,
/// if the file is missing, lacks a function, or has another major version than the header used in this build.
NcclLibrary load_nccl(const char* file);

/// Returns the library for this build's GPUs, loaded once per process. Errors: see load_nccl; thrown on each call.
const NcclLibrary& nccl_library();

/// Throws std::runtime_error with `what` and NCCL's error text, unless `result` is ncclSuccess or ncclInProgress.
/// `communicator` may be null.
void check_nccl(const NcclLibrary& library, ncclResult_t result, ncclComm_t communicator, std::string_view what);

}  // namespace mylos::parallel
