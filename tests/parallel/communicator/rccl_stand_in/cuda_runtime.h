#pragma once
/* What nccl.h of the stand-in includes; rccl/rccl.h has included HIP's runtime instead. */
