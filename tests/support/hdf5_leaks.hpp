#pragma once

/// HDF5 1.10 leaks memory on damaged metadata; suppress this in the leak checker. To be included by one file of each
/// program that reads damaged files in its own process.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }  // NOLINT: the checker's name
