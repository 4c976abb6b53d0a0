#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string_view>

/// For programs started with LD_PRELOAD naming this library: rank 1 stops itself at the beginning of the MPI call that
/// MYLOS_STOP_IN names. As Cray MPICH without its GTL library, MPI_Init ends the program if GPUs are to be supported.
namespace {

void stop_in(std::string_view call) {
  const char* const where = std::getenv("MYLOS_STOP_IN");
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  if (where != nullptr && rank != nullptr && where == call && std::string_view(rank) == "1") std::raise(SIGSTOP);
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming)
int MPI_Init_thread(int* count, char*** words, int required, int* provided) {
  stop_in("MPI_Init");
  const char* const gpus = std::getenv("MPICH_GPU_SUPPORT_ENABLED");
  if (gpus != nullptr && std::string_view(gpus) == "1") {
    std::fputs("MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but GTL library is not linked\n", stderr);
    std::_Exit(255);
  }
  return PMPI_Init_thread(count, words, required, provided);
}
int MPI_Comm_dup(MPI_Comm from, MPI_Comm* to) {
  stop_in("MPI_Comm_dup");
  return PMPI_Comm_dup(from, to);
}
int MPI_Comm_split(MPI_Comm from, int color, int key, MPI_Comm* to) {
  stop_in("MPI_Comm_split");
  return PMPI_Comm_split(from, color, key, to);
}
int MPI_Comm_split_type(MPI_Comm from, int type, int key, MPI_Info info, MPI_Comm* to) {
  stop_in("MPI_Comm_split_type");
  return PMPI_Comm_split_type(from, type, key, info, to);
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm ranks) {
  stop_in("MPI_Bcast");
  return PMPI_Bcast(data, count, type, root, ranks);
}
int MPI_Allgather(const void* mine, int count, MPI_Datatype type, void* all, int each, MPI_Datatype to,
                  MPI_Comm ranks) {
  stop_in("MPI_Allgather");
  return PMPI_Allgather(mine, count, type, all, each, to, ranks);
}
int MPI_Comm_free(MPI_Comm* ranks) {
  stop_in("MPI_Comm_free");
  return PMPI_Comm_free(ranks);
}
int MPI_Finalize() {
  stop_in("MPI_Finalize");
  return PMPI_Finalize();
}
// NOLINTEND(readability-identifier-naming)
