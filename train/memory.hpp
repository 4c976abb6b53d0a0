#pragma once

#include <cstddef>

/// Memory of this process and of the machine it runs on, as the system counts it.
namespace mylos::train {

/// Bytes that this process may still take where kernels compute: what the machine has free, or its control group if
/// that is less; of a device build what the device has, but for 1 GiB that no plan counts.
std::size_t available_memory();
/// The same of the host, in every build; needs no device.
std::size_t available_host_memory();

/// Bytes of this process that are resident now, and the most there have been; of a device build both are what anybody
/// has taken of the device now.
std::size_t resident_memory();
std::size_t peak_resident_memory();

/// Gives back to the system what the heap holds and nobody uses, where the C library can.
void release_unused_memory();

}  // namespace mylos::train
