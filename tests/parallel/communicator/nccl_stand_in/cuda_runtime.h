#pragma once

#include <stddef.h>

/* Stands in for the part of CUDA's runtime that parallel/communicator/nccl_*.cpp call, on machines without a GPU. Device memory is
 * host memory. A stream is a thread, so work on it runs later than the call and in order. The process has two devices,
 * and a new thread uses the first, so that a thread which never chose its device is seen. */

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

/* New memory, and freed memory, holds bytes that make every float a NaN. */
cudaError_t cudaMalloc(void** memory, size_t bytes);
cudaError_t cudaFree(void* memory);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);

/* Only the stand-in has these. */

/* The number of streams whose work has not ended; none on a device that has failed. */
size_t stand_in_busy_streams(void);
/* The largest number of entries that a stream has held at a time. */
size_t stand_in_longest_queue(void);
/* NCCL's operations that were put on streams. */
void stand_in_note_operation(void);
size_t stand_in_operations(void);
/* From here on every query of the device fails with cudaErrorLaunchFailure, as after a kernel's bad access. */
void stand_in_fail_device(void);
int stand_in_device_failed(void);

#ifdef __cplusplus
}
#endif
