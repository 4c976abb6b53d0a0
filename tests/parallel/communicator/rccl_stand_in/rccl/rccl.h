#pragma once

#include <hip/hip_runtime_api.h>

/* The declarations of RCCL that parallel/communicator/nccl/nccl_*.cpp need, for builds on machines without ROCm's: those of
 * the stand-in for NCCL. RCCL 5.4, which Debian has, lacks some of them. */
#define cudaStream_t hipStream_t
#include "../../nccl_stand_in/nccl.h"
