#pragma once

#include <nccl.h>

#include <string>
#include <string_view>

namespace mylos::parallel {

/// NCCL's functions that are used here, by the names they have in this table.
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

/// NCCL as it is found when it is first needed, so that the program starts on machines without it.
struct NcclLibrary {
#define MYLOS_NCCL_MEMBER(member, function) decltype(&::function) member = nullptr;
  MYLOS_NCCL_FUNCTIONS(MYLOS_NCCL_MEMBER)
#undef MYLOS_NCCL_MEMBER
  int version = 0;  ///< 22809 is 2.28.9
};

/// From `file`, which the system's loader looks for, and which stays open. Errors: std::runtime_error that says what to
/// change: it is not there, it lacks a function, or its major version is not that of the header this was built with.
NcclLibrary load_nccl(const char* file);

/// libnccl.so.2, loaded once a process. Errors: as load_nccl, each time.
const NcclLibrary& nccl_library();

/// Throws std::runtime_error with `what` and NCCL's words, unless `result` is a success or says that NCCL goes on by
/// itself. `communicator` may be none.
void check_nccl(const NcclLibrary& library, ncclResult_t result, ncclComm_t communicator, std::string_view what);

}  // namespace mylos::parallel
