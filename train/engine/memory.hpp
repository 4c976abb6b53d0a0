#pragma once

#include <cstddef>
#include <string>

/// Memory of this process and of the machine it runs on, as the system counts it.
namespace mylos::train {

/// Bytes that this process may still take where kernels compute: its part of what the machine has free, or its control
/// group if that is less, where `sharing` processes share it, and no more than its address space has left (ulimit -v);
/// of a device build its part of what the device has, but for 1 GiB that no plan counts.
std::size_t available_memory(std::size_t sharing = 1);
/// The same of the host, in every build; needs no device.
std::size_t available_host_memory();

/// Bytes of this process that are resident now, and the most there have been; of a device build both are what anybody
/// has taken of the device now.
std::size_t resident_memory();
std::size_t peak_resident_memory();
/// Makes the peak count from now on, as that of a process of its own. Returns false where the system does not let this
/// process do so; on a device it always counts from now on.
bool reset_peak_resident_memory();

/// Sets what the C library's heaps keep: blocks of 128 KiB and more go back to the system when they are freed. Else
/// that bound grows up to 32 MiB with what is freed, and the aligned blocks that each product takes for each thread
/// leave gaps that none of the next fits: heaps grow to ten times of what is in use. For the start of a program.
void bound_heaps();

/// " (the address space is limited to 2.00 GiB: ulimit -v)" where it is limited, else empty: what a message about
/// missing memory adds to what is free.
std::string address_space_note();

/// Gives back to the system what the heap holds and nobody uses, where the C library can.
void release_unused_memory();

}  // namespace mylos::train
