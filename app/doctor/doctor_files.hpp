#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/base/signals.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

/// Checks the file system of a run's output: its type, whether files can be written, and whether all nodes see them.
namespace mylos::app {

/// Size of the trial file, in bytes.
inline constexpr std::size_t trial_bytes = std::size_t{8} << 20;

/// A type of file system.
struct FileSystemKind {
  std::string_view name;
  Level level = Level::ok;
  std::string_view advice = {};
};
FileSystemKind file_system_kind(unsigned long number);

/// Returns `path`, which must be absolute, or its nearest existing ancestor. A symbolic link counts as existing even if
/// its target does not.
std::filesystem::path nearest_existing(const std::filesystem::path& path);

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
struct SpaceFacts {
  std::size_t available = 0;   ///< bytes available to this user
  bool has_files_left = true;  ///< whether more files can be created
};
Findings space_findings(const SpaceFacts& facts);

/// The result of a write test.
struct Trial {
  std::string failed = {};  ///< the step that failed: "write"; empty if none did
  int error = 0;            ///< errno of that step
  int lock_error = 0;       ///< errno of flock
  double seconds = 0.0;     ///< until trial_bytes are on disk
};
/// Writes, synchronizes, locks, renames, reads and removes a file. Leaves no file behind, even if a signal ends the
/// program while a ScrapGuard exists.
Trial try_directory(const std::filesystem::path& directory);
Findings trial_findings(const Trial& trial);

/// While an instance exists, SIGINT, SIGTERM and SIGUSR1 remove the files of try_directory and SharedProbe and end the
/// program with the exit code of the signal.
class ScrapGuard {
 public:
  ScrapGuard();

 private:
  PreviousHandlers previous_;
};

class Scrap;

/// Removes these files immediately; for ending the program while other threads use them.
void remove_scraps();

/// A file that exists as long as the object, so that other ranks can check whether they see the same directory.
class SharedProbe {
 public:
  /// Leaves the name empty if the file cannot be written.
  explicit SharedProbe(const std::filesystem::path& directory);
  ~SharedProbe();
  SharedProbe(const SharedProbe&) = delete;
  SharedProbe& operator=(const SharedProbe&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<Scrap> file_;
  std::string name_;
};
/// Looks for the file for up to `seconds`, because some file systems show new files late.
Findings probe_findings(const std::filesystem::path& directory, const std::string& name, const std::string& writer,
                        double seconds);
Findings probe_findings();  ///< on the rank that wrote the file

}  // namespace mylos::app
