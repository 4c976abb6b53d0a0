#pragma once

#include <stddef.h>

/* A stand-in for the part of CUDA's runtime that parallel/communicator/nccl/nccl_*.cpp call, for machines without a GPU.
 * Device memory is host memory. A stream is a thread, so its work runs after the call, in order. The process has two
 * devices, and new threads use the first one, which exposes threads that do not select their device. */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cudaError {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719
} cudaError_t;

typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef void (*cudaHostFn_t)(void* argument);

typedef enum cudaMemcpyKind { cudaMemcpyDeviceToDevice = 3 } cudaMemcpyKind;

enum { cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2 };

const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);

cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument);

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaEventQuery(cudaEvent_t event);

/* New memory and freed memory contain bytes that make every float a NaN. */
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);

/* Functions that only the stand-in has. */

/* The number of streams with unfinished work; 0 on a failed device. */
size_t stand_in_busy_streams(void);
/* The largest number of entries that a stream has held at once. */
size_t stand_in_longest_queue(void);
/* The number of NCCL operations put on streams, and the number of calls in them. A group is one operation of several
 * calls; its messages count as one call. */
void stand_in_note_operation(size_t calls);
size_t stand_in_operations(void);
size_t stand_in_calls(void);
/* Makes every later query of the device fail with cudaErrorLaunchFailure, as after a kernel's invalid access. */
void stand_in_fail_device(void);
int stand_in_device_failed(void);

#ifdef __cplusplus
}
#endif
