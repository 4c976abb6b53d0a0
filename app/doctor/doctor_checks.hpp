#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/process/signals.hpp"
#include "core/device.hpp"
#include "core/kernels/products/openblas_kernels.hpp"
#include "parallel/launch/launcher.hpp"

#include <sys/resource.h>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The checks of `mylos doctor`: a function ..._facts collects, and a function ..._findings judges, so that tests give
/// it facts. Each section is a .cpp file.
namespace mylos::app {

// doctor_launch.cpp: MPI, the launcher and the batch system.

/// Properties of the MPI library.
struct MpiFacts {
  bool is_built = true;
  std::size_t ranks = 1;
  std::string library = {}, thread_level = {};
};

/// Checks this process against the variables that its launcher set.
Findings launch_findings(const MpiFacts& mpi, const parallel::Environment& environment);

/// Reports the batch job. `remaining` is the number of seconds until the job ends, if the scheduler reports it.
Findings job_findings(const parallel::Environment& environment, std::optional<double> remaining);

/// Reports an all-gather: `shortest` is its time in seconds for 8 bytes from each rank, `longer` for `bytes`.
Findings exchange_findings(std::size_t ranks, std::size_t nodes, double shortest, double longer, std::size_t bytes);

/// The clock of a rank relative to that of the first rank.
struct ClockOffset {
  std::size_t rank = 0;
  double ahead = 0.0;        ///< seconds
  double uncertainty = 0.0;  ///< seconds; half of a round trip
};
Findings clock_findings(std::span<const ClockOffset> offsets);

/// Reports variables that change the behaviour of MPI, NCCL, OpenMP and HDF5. `variables` holds NAME=VALUE entries.
Findings environment_findings(std::span<const std::string> variables);

// doctor_processors.cpp: threads and the processors that they run on.

/// Processor information of one rank.
struct ProcessorFacts {
  std::string host = {};
  Processors allowed = {}, available = {};
  std::size_t cores = 0;           ///< cores of the `allowed` processors; 0 if unknown
  std::size_t asked_threads = 0;   ///< OMP_NUM_THREADS; 0 if not set
  std::string threads_error = {};  ///< why OMP_NUM_THREADS is not a valid number of threads
  std::string binding = {};        ///< OMP_PROC_BIND
  double quota = 0.0;              ///< limit of the rank's control group, in processors; 0: none
};
ProcessorFacts processor_facts(const std::string& host);

/// Returns the findings of each rank of one node, in order.
std::vector<Findings> processor_findings(std::span<const ProcessorFacts> node);
/// Reports pinning that `mylos train` would refuse. `ranks` holds the world rank of each element of `node`.
Findings pinning_findings(std::span<const ProcessorFacts> node, std::span<const std::size_t> ranks);

/// Reports whether other programs have more threads than the node has processors.
Findings load_findings(const NodeLoad& load);

/// Compares the instruction sets of the CPU with those of the build. `built` and `present` are names of CPU features.
Findings instruction_findings(std::span<const std::string> built, std::span<const std::string> present);

/// Reports which kernels OpenBLAS uses, and who chose them if it was not OpenBLAS. No finding with another BLAS.
Findings openblas_findings(const OpenBlasChoice& choice);

// doctor_gpus.cpp: GPUs, their driver, and NCCL.

/// GPU information of one rank.
struct GpuFacts {
  bool is_needed = !runs_on_host;  ///< whether the build needs a GPU
  std::string obstacle = {};       ///< why the build cannot use the GPUs; empty if it can
  std::vector<DeviceInfo> devices = {};
  std::string driver = {};  ///< version of NVIDIA's driver, if it is loaded: "535.129.03"
  /// Architectures of the AMD GPUs that the system lists, each as "gfx90a".
  std::vector<std::string> amd_architectures = {};
  std::size_t rank_of_node = 0;  ///< selects the device of the rank
};
GpuFacts gpu_facts(std::size_t rank_of_node);

/// Returns the device of the rank; null if there is none.
const DeviceInfo* own_device(const GpuFacts& facts);

Findings gpu_findings(const GpuFacts& facts);
/// Returns the findings of each rank. `devices` holds the device id of each rank, empty if the rank has none.
std::vector<Findings> shared_gpu_findings(std::span<const std::string> devices);

/// Checks the GEMM and convolution providers of a GPU build, some of which need vendor libraries. `obstacle(name)`
/// returns why a provider cannot be used; empty if it can.
Findings provider_findings(std::span<const std::string> providers,
                           const std::function<std::string(std::string_view)>& obstacle);

/// Reports the NCCL version, if the build has NCCL.
Findings nccl_findings();
/// Reports the effect of NCCL's variables. `interfaces` and `adapters` name the node's network interfaces and
/// InfiniBand adapters.
Findings nccl_environment_findings(const parallel::Environment& environment, std::span<const std::string> interfaces,
                                   std::span<const std::string> adapters);

/// Returns the sorted names of the entries of a system directory; empty if the directory does not exist.
std::vector<std::string> names_below(const char* folder);

/// Returns the architectures of AMD's GPUs, each as "gfx90a", from the directory in which their driver lists
/// processors. GPUs that this process may not use are left out.
std::vector<std::string> amd_architectures(const std::filesystem::path& nodes = "/sys/class/kfd/kfd/topology/nodes");

/// Returns the version in the text of /proc/driver/nvidia/version; empty if there is none.
std::string driver_version(const std::string& text);

// doctor_system.cpp: memory, process limits, HDF5, caches and models.

struct MemoryFacts {
  std::size_t available = 0;         ///< bytes available on the node, or in its control group
  std::size_t ranks_of_node = 1;     ///< ranks that share this memory
  std::size_t shared_available = 0;  ///< free bytes in /dev/shm
  std::string huge_pages = {};       ///< "always [madvise] never"
};
MemoryFacts memory_facts(std::size_t ranks_of_node);
Findings memory_findings(const MemoryFacts& facts);

/// Returns the limit of a resource (RLIMIT_AS, ...), in bytes or a count; RLIM_INFINITY if unlimited.
rlim_t system_limit(int resource);
/// Reports limits of `ulimit` that runs would exceed. `limit_of` is system_limit or a stand-in.
Findings limit_findings(const std::function<rlim_t(int)>& limit_of, bool has_infiniband);

/// `version`: HDF5 version of the build, empty if it has none.
Findings hdf5_findings(const std::string& version, bool is_parallel);

/// Checks whether the user's cache can store timings and models.
Findings cache_findings();

/// Checks whether --model names a model that exists here.
Findings model_findings(const std::string& model);

// doctor_files.cpp: the file system of a run's output: its type, whether files can be written, and whether all nodes
// see them.

/// Size of the trial file, in bytes.
inline constexpr std::size_t trial_bytes = std::size_t{8} << 20;

/// A type of file system.
struct FileSystemKind {
  unsigned long number;  ///< in statfs
  std::string_view name;
  Level level = Level::ok;
  std::string_view advice = {};
};
FileSystemKind file_system_kind(unsigned long number);

/// The directory for a run's output.
struct OutputTarget {
  std::filesystem::path directory;  ///< existing directory to test: `wanted` or an ancestor; empty if there is none
  Findings findings;
};
OutputTarget find_output(const std::filesystem::path& wanted);

/// Reports how Lustre stripes new files of `directory` over its servers, as shown by `lfs`.
Findings striping_findings(const std::filesystem::path& directory);
/// Reports the type and free space of the file system. `directory` must exist.
Findings directory_findings(const std::filesystem::path& directory);
/// `available`: bytes available to this user; `has_files_left`: more files can be created.
Findings space_findings(std::size_t available, bool has_files_left);

/// The result of a write test.
struct Trial {
  std::string failed = {};  ///< the step that failed: "write"; empty if none did
  int error = 0;            ///< errno of that step
  int lock_error = 0;       ///< errno of flock
  double seconds = 0.0;     ///< until trial_bytes are on disk
};
/// Writes, synchronizes, locks, renames, reads and removes a file. Leaves no file behind.
Trial try_directory(const std::filesystem::path& directory);
Findings trial_findings(const Trial& trial);

/// Removes the files of try_directory and write_probe. For ending the program, also while other threads use them.
void remove_scraps();

/// Removes these files with the object. While an instance exists, SIGINT, SIGTERM and SIGUSR1 remove them, too, and end
/// the program with the exit code of the signal.
class ScrapGuard {
 public:
  ScrapGuard();
  ~ScrapGuard() { remove_scraps(); }

 private:
  PreviousHandlers previous_;
};

/// Writes a file that exists until remove_scraps(), so that other ranks can check whether they see the same directory.
/// Returns its name; empty if it cannot be written.
std::string write_probe(const std::filesystem::path& directory);
/// Looks for the file for up to `seconds`, because some file systems show new files late.
Findings probe_findings(const std::filesystem::path& directory, const std::string& name, const std::string& writer,
                        double seconds);
Findings probe_findings();  ///< on the rank that wrote the file

// doctor_checks.cpp: the checks of a rank.

/// Runs checks that may hang, each on a thread of its own that is abandoned after a time limit.
class LimitedChecks {
 public:
  /// `limit` is the time limit of doctor in seconds. Each check gets a fraction of it.
  explicit LimitedChecks(double limit) : limit_(limit) {}

  double limit() const { return limit_; }
  /// Runs `check` and adds its findings; an exception becomes an error called `name`. If it does not return within
  /// `fraction` of the limit, adds a finding that names its operation, `what`, and returns false. `check` must not
  /// refer to local variables of the caller.
  bool run(Findings& found, const char* name, const std::string& what, double fraction,
           std::function<Findings()> check);
  /// Returns whether a check has not returned in time, so that its thread may still run.
  bool has_left_threads() const { return has_left_threads_; }

 private:
  double limit_;
  bool has_left_threads_ = false;
};

/// Runs the checks of a rank that need no MPI, and adds what they find. `output` and `model` are as typed. Returns the
/// existing directory to test, for the run's output; empty if there is none.
std::filesystem::path check_environment(LimitedChecks& checks, const std::filesystem::path& output,
                                        const std::string& model, Findings& findings);

/// The position of a rank on its node.
struct NodePosition {
  std::size_t rank_of_node = 0, ranks_of_node = 1;
};
/// The report of a rank to the first one.
struct RankReport {
  Findings findings;
  ProcessorFacts processors;
  std::string device, build;
};
/// Runs the checks that depend on the rank's position on its node, called `host`. Returns the rank's report, which
/// begins with `findings`.
RankReport check_rank(LimitedChecks& checks, const NodePosition& position, const std::string& host, Findings findings);

}  // namespace mylos::app
