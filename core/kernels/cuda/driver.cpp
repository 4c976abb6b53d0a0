#include "core/kernels/cuda/driver.hpp"

#include <cuda.h>
#include <dlfcn.h>

/// Kokkos calls three functions of the driver. A program linked with the driver's library does not start without it, so
/// these stand in for them and pass calls on.
namespace mylos::cuda {
namespace {

void* library() {
  static void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return handle;
}

/// CUDA_ERROR_NOT_INITIALIZED where the function is not there.
template <class... Arguments>
CUresult call(const char* name, Arguments... arguments) {
  void* const function = library() == nullptr ? nullptr : ::dlsym(library(), name);
  if (function == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return reinterpret_cast<CUresult (*)(Arguments...)>(function)(arguments...);
}

}  // namespace

bool has_driver() { return library() != nullptr; }

}  // namespace mylos::cuda

// cuda.h's macros turn the second name into that of its second version.
extern "C" {
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) { return mylos::cuda::call("cuCtxGetDevice", device); }
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { return mylos::cuda::call("cuCtxPushCurrent_v2", context); }
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return mylos::cuda::call("cuStreamGetCtx", stream, context);
}
}
