#pragma once

#include "app/doctor/doctor_finding.hpp"
#include "core/base/signals.hpp"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

/// The file system that a run's output goes to: what it is, whether it takes files, and whether all nodes see them.
namespace mylos::app {

/// Bytes of the file that is written to try it.
inline constexpr std::size_t trial_bytes = std::size_t{8} << 20;

/// By statfs's number.
struct FileSystemKind {
  std::string_view name;
  Level level = Level::ok;
  std::string_view advice = {};
};
FileSystemKind file_system_kind(unsigned long number);

/// The nearest above an absolute `path` that is there, or itself; a link is there wherever it leads.
std::filesystem::path nearest_existing(const std::filesystem::path& path);

/// Where a run's output would go.
struct OutputTarget {
  std::filesystem::path directory;  ///< that can be tried: `wanted` or the nearest above it; empty where there is none
  Findings findings;
};
OutputTarget find_output(const std::filesystem::path& wanted);

/// How Lustre spreads new files of `directory` over its servers, as `lfs` says.
Findings striping_findings(const std::filesystem::path& directory);
/// What it is and what is free there. `directory` is there.
Findings directory_findings(const std::filesystem::path& directory);
struct SpaceFacts {
  std::size_t available = 0;   ///< bytes, for this user
  bool has_files_left = true;  ///< more may be made
};
Findings space_findings(const SpaceFacts& facts);

/// How writing a file went.
struct Trial {
  std::string failed = {};  ///< "write", where it could not
  int error = 0;            ///< errno of it
  int lock_error = 0;       ///< errno of flock
  double seconds = 0.0;     ///< of trial_bytes to be on the disk
};
/// Writes, synchronises, locks, renames, reads and removes a file. Nothing is left, also where a signal ends it while a
/// ScrapGuard lives.
Trial try_directory(const std::filesystem::path& directory);
Findings trial_findings(const Trial& trial);

/// While it lives, SIGINT, SIGTERM and SIGUSR1 remove what try_directory and SharedProbe have written, and end the
/// program with their exit code.
class ScrapGuard {
 public:
  ScrapGuard();

 private:
  PreviousHandlers previous_;
};

class Scrap;

/// Removes them now; for what ends the program while threads use them.
void remove_scraps();

/// A file that is there while it lives, by which others see whether they look at the same folder.
class SharedProbe {
 public:
  /// Where it cannot be written its name is empty.
  explicit SharedProbe(const std::filesystem::path& directory);
  ~SharedProbe();
  SharedProbe(const SharedProbe&) = delete;
  SharedProbe& operator=(const SharedProbe&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::unique_ptr<Scrap> file_;
  std::string name_;
};
/// Looks for it for `seconds`: some file systems show a file late.
Findings probe_findings(const std::filesystem::path& directory, const std::string& name, const std::string& writer,
                        double seconds);
Findings probe_findings();  ///< of the rank that wrote it

}  // namespace mylos::app
