#include "core/kernels/cuda/driver.hpp"

#include <cuda.h>
#include <dlfcn.h>

/// Replacements for the three driver functions that Kokkos calls. A program linked with the driver's library would not
/// start without it, so these functions forward the calls at run time.
namespace mylos::cuda {
namespace {

void* library() {
  static void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  return handle;
}

/// Calls a function of the driver; returns CUDA_ERROR_NOT_INITIALIZED if it does not exist.
template <class... Arguments>
CUresult call(const char* name, Arguments... arguments) {
  void* const function = library() == nullptr ? nullptr : ::dlsym(library(), name);
  if (function == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  return reinterpret_cast<CUresult (*)(Arguments...)>(function)(arguments...);
}

}  // namespace

bool has_driver() { return library() != nullptr; }

}  // namespace mylos::cuda

// cuda.h defines the second name as a macro for its _v2 version.
extern "C" {
CUresult CUDAAPI cuCtxGetDevice(CUdevice* device) { return mylos::cuda::call("cuCtxGetDevice", device); }
CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) { return mylos::cuda::call("cuCtxPushCurrent_v2", context); }
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return mylos::cuda::call("cuStreamGetCtx", stream, context);
}
}
