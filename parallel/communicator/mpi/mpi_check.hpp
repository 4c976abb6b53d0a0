#pragma once

/// Throws std::runtime_error with the call and MPI's error text, unless the call returns MPI_SUCCESS.
#define MYLOS_CHECK_MPI(call) ::mylos::parallel::check_mpi(call, #call)

namespace mylos::parallel {

void check_mpi(int code, const char* call);

}  // namespace mylos::parallel
