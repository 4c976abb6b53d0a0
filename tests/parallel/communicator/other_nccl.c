/* An NCCL of the major version 3, for test_nccl_library.cpp: its functions do nothing. */

int ncclGetVersion(int* version) {
  *version = 30102;
  return 0;
}

#define NOTHING(name) \
  int name(void);     \
  int name(void) { return 0; }
NOTHING(ncclGetUniqueId)
NOTHING(ncclCommInitRankConfig)
NOTHING(ncclCommFinalize)
NOTHING(ncclCommDestroy)
NOTHING(ncclCommAbort)
NOTHING(ncclCommGetAsyncError)
NOTHING(ncclGetErrorString)
NOTHING(ncclGetLastError)
NOTHING(ncclGroupStart)
NOTHING(ncclGroupEnd)
NOTHING(ncclSend)
NOTHING(ncclRecv)
NOTHING(ncclAllReduce)
NOTHING(ncclReduceScatter)
NOTHING(ncclAllGather)
NOTHING(ncclBroadcast)
