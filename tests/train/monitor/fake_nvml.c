/* A library that imitates NVIDIA's management library, for simulated GPUs. FAKE_NVML_GPUS contains their UUIDs, each
   after a space. FAKE_NVML selects their behaviour:
     counted     all values are available; GPU k uses k + 1 GiB, 100 (k + 1) W, and 1000 (k + 1) J more per query
     uncounted   no energy, as before Volta
     silent      only memory, as for a MIG instance, or on a site that forbids queries
     lost        the first GPU is lost at its third query
     stuck       the first GPU does not answer its second query
     broken      the library does not start */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { done = 0, not_supported = 3, no_permission = 4, not_found = 6, driver_not_loaded = 9, gpu_is_lost = 15 };
enum { most_gpus = 8 };

static int asked[most_gpus], energy_asked[most_gpus];

static int behaves(const char* how) {
  const char* given = getenv("FAKE_NVML");
  return given != NULL && strcmp(given, how) == 0;
}

/* Handles are 1 + the index. */
static int index_of(void* device) { return (int)(size_t)device - 1; }

int nvmlInit_v2(void) {
  memset(asked, 0, sizeof asked);
  memset(energy_asked, 0, sizeof energy_asked);
  return behaves("broken") ? driver_not_loaded : done;
}

int nvmlShutdown(void) { return done; }

const char* nvmlErrorString(int result) {
  switch (result) {
    case driver_not_loaded:
      return "Driver Not Loaded";
    case gpu_is_lost:
      return "GPU is lost";
    default:
      return "Unknown Error";
  }
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  const char* all = getenv("FAKE_NVML_GPUS");
  const char* found = all == NULL ? NULL : strstr(all, uuid);
  if (found == NULL || strlen(uuid) != strlen("GPU-00000000-0000-0000-0000-000000000000")) return not_found;
  *device = (void*)(size_t)(1 + (found - all) / (1 + (long)strlen(uuid)));
  return done;
}

int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  (void)device;
  strncpy(name, "Fake GPU", length);
  return done;
}

struct utilization {
  unsigned gpu, memory;
};

int nvmlDeviceGetUtilizationRates(void* device, struct utilization* rates) {
  const int index = index_of(device);
  if (behaves("lost") && index == 0 && ++asked[index] > 2) return gpu_is_lost;
  if (behaves("stuck") && index == 0 && ++asked[index] > 1) {
    for (;;) pause();
  }
  if (behaves("silent")) return not_supported;
  rates->gpu = 10u * (unsigned)(index + 1);
  rates->memory = 5;
  return done;
}

struct memory {
  unsigned long long total, available, used;
};

int nvmlDeviceGetMemoryInfo(void* device, struct memory* memory) {
  memory->total = 16ull << 30;
  memory->used = (unsigned long long)(index_of(device) + 1) << 30;
  memory->available = memory->total - memory->used;
  return done;
}

int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (behaves("silent")) return no_permission;
  *milliwatts = 100000u * (unsigned)(index_of(device) + 1);
  return done;
}

int nvmlDeviceGetTotalEnergyConsumption(void* device, unsigned long long* millijoules) {
  const int index = index_of(device);
  if (behaves("silent") || behaves("uncounted")) return not_supported;
  *millijoules = 5000000ull + 1000000ull * (unsigned long long)(index + 1) * (unsigned long long)energy_asked[index]++;
  return done;
}
