#pragma once

#include <cstddef>
#include <string>

/// Memory of this process and its machine, as reported by the operating system.
namespace mylos::train {

/// Returns the bytes that this process may still allocate where kernels compute. On a host: an equal part, for
/// `sharing` processes, of the machine's free memory or of the free memory in its control group, whichever is less, and
/// at most the rest of its address space (ulimit -v). On a device: an equal part of the free device memory, less 1 GiB
/// that no plan counts.
std::size_t available_memory(std::size_t sharing = 1);
/// Returns the free bytes of host memory, limited by the control group, in every build. Needs no device.
std::size_t available_host_memory();

/// Return the bytes of this process that are resident now, and their peak. In a device build both return the device
/// memory in use now by all processes.
std::size_t resident_memory();
std::size_t peak_resident_memory();
/// Restarts the peak from the current value. Returns false if the system does not allow it; always true on a device.
bool reset_peak_resident_memory();

/// Fixes the C library's mmap threshold at 128 KiB, so that freed blocks of this size and more return to the system. By
/// default the threshold grows up to 32 MiB as blocks are freed, and the aligned blocks that each product allocates for
/// each thread leave gaps that none of the next blocks fits: heaps grow to ten times the memory in use. Call it at
/// program start.
void bound_heaps();

/// Returns " (the address space is limited to 2.00 GiB: ulimit -v)" if it is limited, else an empty string. For
/// messages about missing memory.
std::string address_space_note();

/// Returns unused heap memory to the system if the C library supports it.
void release_unused_memory();

}  // namespace mylos::train
