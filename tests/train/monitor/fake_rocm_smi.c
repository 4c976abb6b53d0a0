/* A library that imitates AMD's management library, for two simulated GPUs at the PCI addresses 0000:c1:00.0 and 0001:c6:00.0, the second
   of which is partition 1. FAKE_ROCM_SMI selects their behaviour:
     (nothing)   GPU k uses k + 1 GiB, 100 (k + 1) W, and 15.25 (k + 1) J more per query
     silent      only memory, as on a site that forbids queries
     broken      the library does not start */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { done = 0, invalid = 1, not_supported = 2, no_permission = 4, not_started = 8 };
enum { gpus = 2 };

static int energy_asked[gpus];

static int behaves(const char* how) {
  const char* given = getenv("FAKE_ROCM_SMI");
  return given != NULL && strcmp(given, how) == 0;
}

int rsmi_init(uint64_t flags) {
  memset(energy_asked, 0, sizeof energy_asked);
  return flags != 0 ? invalid : behaves("broken") ? not_started : done;
}

int rsmi_shut_down(void) { return done; }

int rsmi_num_monitor_devices(uint32_t* count) {
  *count = gpus;
  return done;
}

int rsmi_dev_pci_id_get(uint32_t index, uint64_t* id) {
  *id = index == 0 ? 0xc100ull : 1ull << 32 | 1ull << 28 | 0xc600ull;
  return index < gpus ? done : invalid;
}

int rsmi_dev_name_get(uint32_t index, char* name, size_t length) {
  strncpy(name, "Fake Instinct", length);
  return index < gpus ? done : invalid;
}

int rsmi_dev_busy_percent_get(uint32_t index, uint32_t* percent) {
  if (behaves("silent")) return no_permission;
  *percent = 10 * (index + 1);
  return done;
}

int rsmi_dev_memory_busy_percent_get(uint32_t index, uint32_t* percent) {
  (void)index;
  *percent = 5;
  return behaves("silent") ? not_supported : done;
}

int rsmi_dev_memory_usage_get(uint32_t index, int kind, uint64_t* bytes) {
  *bytes = (uint64_t)(index + 1) << 30;
  return kind == 0 ? done : invalid;
}

int rsmi_dev_memory_total_get(uint32_t index, int kind, uint64_t* bytes) {
  (void)index;
  *bytes = 64ull << 30;
  return kind == 0 ? done : invalid;
}

int rsmi_dev_power_get(uint32_t index, uint64_t* microwatts, int* kind) {
  if (kind == NULL) return invalid;
  *microwatts = 100000000ull * (index + 1);
  return behaves("silent") ? not_supported : done;
}

int rsmi_dev_energy_count_get(uint32_t index, uint64_t* units, float* microjoules, uint64_t* time) {
  *microjoules = 15.25f;
  *time = 1;
  *units = behaves("second") ? 0 : 4000000ull + 1000000ull * (uint64_t)(index + 1) * (uint64_t)energy_asked[index]++;
  return behaves("silent") ? not_supported : done;
}
