/* A stand-in for the driver's library, libcuda.so.1, on machines without a GPU. It accepts the kernels that cuDNN
 * compiles while it plans graphs (bench/cudnn_plans.cpp), and cannot do anything else. */

typedef int CUresult;
enum { success = 0, stub_library = 34 };

static int loaded; /* handles point here */

CUresult cuLibraryLoadData(void** library) {
  *library = &loaded;
  return success;
}
CUresult cuLibraryGetKernel(void** kernel) {
  *kernel = &loaded;
  return success;
}
CUresult cuLibraryUnload(void) { return success; }
CUresult cuKernelSetAttribute(void) { return success; }
CUresult cuKernelGetAttribute(int* value) {
  *value = 0;
  return success;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}

/* Only asked for, or expected to fail without a device. */
#define UNAVAILABLE(name) \
  CUresult name(void) { return stub_library; }
UNAVAILABLE(cuInit)
UNAVAILABLE(cuCtxGetCurrent)
UNAVAILABLE(cuCtxGetLimit)
UNAVAILABLE(cuCtxPopCurrent)
UNAVAILABLE(cuCtxPushCurrent)
UNAVAILABLE(cuDeviceGet)
UNAVAILABLE(cuDeviceGetCount)
UNAVAILABLE(cuGetErrorName)
UNAVAILABLE(cuGetErrorString)
UNAVAILABLE(cuLaunchCooperativeKernel)
UNAVAILABLE(cuLaunchKernel)
UNAVAILABLE(cuLaunchKernelEx)
UNAVAILABLE(cuLibraryLoadFromFile)
UNAVAILABLE(cuLinkAddData)
UNAVAILABLE(cuLinkComplete)
UNAVAILABLE(cuLinkCreate)
UNAVAILABLE(cuLinkDestroy)
UNAVAILABLE(cuOccupancyMaxPotentialClusterSize)
UNAVAILABLE(cuStreamGetCtx)
