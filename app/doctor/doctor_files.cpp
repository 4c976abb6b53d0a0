#include "app/doctor/doctor_checks.hpp"

#include "core/base/process/process.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/process/subprocess.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/uninterrupted.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iterator>
#include <optional>
#include <sstream>
#include <thread>
#include <vector>

namespace mylos::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* shared_text = "the first rank's file is seen";
constexpr std::string_view lustre_name = "Lustre";

/// A file that doctor makes: its name, and its path in fixed memory, because a signal handler reads it.
struct Scrap {
  const char* name;
  std::array<char, 4096> path{};
  std::atomic<bool> is_there{false};
};
Scrap trial_file{"trial"}, renamed_file{"renamed"}, shared_file{"shared"};

/// Returns the path of the file in `directory`. From now on, remove_scraps() removes it.
fs::path path_of(Scrap& scrap, const fs::path& directory) {
  const fs::path path = directory / fmt::format(".mylos-doctor-{}-{}-{}", scrap.name, host_name(), ::getpid());
  scrap.is_there = false;
  const std::size_t length = path.string().copy(scrap.path.data(), scrap.path.size() - 1);
  scrap.path[length] = '\0';
  scrap.is_there = length == path.string().size();
  return path;
}

/// Removes the file once; a name that is gone is not looked for again. May run in a signal handler.
void remove_once(Scrap& scrap) {
  if (scrap.is_there && (::unlink(scrap.path.data()) == 0 || errno == ENOENT)) scrap.is_there = false;
}

extern "C" void remove_scraps_and_end(int signal) {
  remove_scraps();
  std::_Exit(exit_code_of(signal));
}

/// Returns errno, or 0 if everything was written.
int write_all(int descriptor, const std::vector<char>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        uninterrupted([&] { return ::write(descriptor, bytes.data() + done, bytes.size() - done); });
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    done += static_cast<std::size_t>(written);
  }
  return 0;
}

bool holds(int descriptor, const std::vector<char>& bytes) {
  std::vector<char> read(bytes.size());
  std::size_t done = 0;
  while (done < read.size()) {
    const ssize_t count = uninterrupted(
        [&] { return ::pread(descriptor, read.data() + done, read.size() - done, static_cast<off_t>(done)); });
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return read == bytes;
}

/// Runs the steps of a trial on an open file.
Trial try_file(int descriptor, const fs::path& from, const fs::path& to) {
  Trial trial;
  const auto failed = [&](const char* step, int error) {
    trial.failed = step;
    trial.error = error;
    return trial;
  };
  std::vector<char> bytes(trial_bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 + i / 4096);
  const auto begin = std::chrono::steady_clock::now();
  if (const int error = write_all(descriptor, bytes); error != 0) return failed("write", error);
  if (uninterrupted([&] { return ::fsync(descriptor); }) != 0) return failed("synchronise (fsync)", errno);
  trial.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) trial.lock_error = errno;
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", errno);
  trial_file.is_there = false;
  if (!holds(descriptor, bytes)) return failed("read back", EIO);
  return trial;
}

/// Returns `path`, which must be absolute, or its nearest existing ancestor. A symbolic link counts as existing even if
/// its target does not.
fs::path nearest_existing(const fs::path& path) {
  fs::path there = path.lexically_normal();
  if (!there.has_filename()) there = there.parent_path();
  std::error_code ignored;
  while (!fs::exists(fs::symlink_status(there, ignored)) && there.has_relative_path()) there = there.parent_path();
  return there;
}

std::string trial_advice(int error) {
  switch (error) {
    case EDQUOT:
      return "your quota is used up: make room (quota -s, lfs quota -h), or choose another directory with --output";
    case ENOSPC:
      return "make room, or choose another directory with --output";
    case EROFS:
    case EACCES:
    case EPERM:
      return "use --output with a directory that compute nodes may write to";
    default:
      return "choose another directory with --output";
  }
}

}  // namespace

FileSystemKind file_system_kind(unsigned long number) {
  static constexpr std::string_view lost =
      "files there are lost after the job: choose a permanent file system with --output";
  // From the kernel's magic.h and the sources of the file systems.
  static constexpr FileSystemKind kinds[] = {
      {0x0BD00BD0, lustre_name},
      {0x47504653, "GPFS"},
      {0x19830326, "BeeGFS"},
      {0x00C36400, "Ceph"},
      {0xAAD7AAEA, "PanFS"},
      {0x6969, "NFS", Level::ok, "it has a single server, which makes checkpoints of many nodes slow"},
      {0x01021994, "tmpfs", Level::warning, lost},
      {0x858458F6, "ramfs", Level::warning, lost},
      {0x794C7630, "overlay", Level::warning,
       "files there may be lost with the container: bind a file system of the site"},
      {0xEF53, "ext4"},
      {0x58465342, "XFS"},
      {0x9123683E, "Btrfs"},
      {0x2FC12FC1, "ZFS"},
      {0x65735546, "FUSE"},
      {0xFF534D42, "CIFS"},
      {0xFE534D42, "SMB"},
      {0x01021997, "9p"},
  };
  const auto* const found = std::ranges::find(kinds, number, &FileSystemKind::number);
  return found == std::end(kinds) ? FileSystemKind{number, "a file system of unknown kind"} : *found;
}

OutputTarget find_output(const fs::path& wanted) {
  std::error_code error;
  const fs::path absolute = fs::absolute(wanted, error);
  if (error) {
    return {{},
            {{Level::error, "output", fmt::format("the current directory does not exist: {}", error.message()),
              "start mylos in a directory that exists on every node"}}};
  }
  const fs::path there = nearest_existing(absolute);
  if (!fs::is_directory(there, error)) {
    return {{},
            {{Level::error, "output",
              fmt::format("{} is not a directory{}", there.string(), error ? ": " + error.message() : ""),
              "choose another directory with --output"}}};
  }
  if (fs::is_directory(absolute, error)) return {there, {}};
  return {there,
          {{Level::ok, "output",
            fmt::format("{} does not exist yet; {} is tested instead", wanted.string(), there.string())}}};
}

Findings striping_findings(const fs::path& directory) {
  static constexpr const char* advice =
      "run lfs setstripe -c 4 -S 4M on it before the first run, to spread checkpoints over servers";
  std::string said, obstacle;
  try {
    const ProcessResult result = run_process({"lfs", "getstripe", "-d", directory.string()});
    (result.exit_code == 0 ? said : obstacle) = result.exit_code == 0 ? result.output : last_line(result.errors);
  } catch (const std::exception& error) {
    obstacle = error.what();
  }
  // lfs prints "stripe_count:  4 stripe_size:   4194304 pattern: ...".
  const auto value_of = [&](const std::string& name) {
    std::istringstream rest(said.substr(std::min(said.size(), said.find(name) + name.size())));
    long long value = 0;
    if (said.find(name) == std::string::npos || !(rest >> value)) return std::optional<long long>();
    return std::optional(value);
  };
  const auto count = value_of("stripe_count:"), size = value_of("stripe_size:");
  if (!count || !size) {
    return {{Level::ok, "striping",
             fmt::format("unknown: {}", obstacle.empty() ? "lfs prints no stripe count" : obstacle), advice}};
  }
  const bool is_single = *count == 0 || *count == 1;  // 0: the file system's default, usually one server
  const std::string servers = *count < 0    ? "all servers"
                              : *count == 0 ? "the default number of servers"
                                            : fmt::format("{} server{}", *count, *count == 1 ? "" : "s");
  return {{is_single ? Level::warning : Level::ok, "striping",
           fmt::format("files are spread over {}, in stripes of {}", servers,
                       bytes_text(static_cast<std::size_t>(std::max(*size, 0ll)))),
           is_single ? advice : ""}};
}

Findings directory_findings(const fs::path& directory) {
  struct statfs about {};
  if (::statfs(directory.c_str(), &about) != 0) {
    return {{Level::error, "output", fmt::format("{}: {}", directory.string(), std::strerror(errno)),
             "choose another directory with --output"}};
  }
  const FileSystemKind kind = file_system_kind(static_cast<unsigned long>(about.f_type) & 0xFFFFFFFFul);
  Findings findings = {
      {kind.level, "output", fmt::format("{}: {}", directory.string(), kind.name), std::string(kind.advice)}};
  if (kind.name == lustre_name) append(findings, striping_findings(directory));
  struct statvfs room {};
  if (::statvfs(directory.c_str(), &room) != 0) return findings;
  append(findings, space_findings(room.f_bavail * room.f_frsize, room.f_files == 0 || room.f_favail > 0));
  return findings;
}

Findings space_findings(std::size_t available, bool has_files_left) {
  // For 110 million parameters: best/, last/ and a copy of 0.4 GiB each, two checkpoints of 1.2 GiB (--keep), and the
  // one being written.
  constexpr double least = 5.0 * (1 << 30);
  const auto bytes = static_cast<double>(available);
  const bool is_little = bytes < least;
  Findings findings = {{is_little ? Level::warning : Level::ok, "output", "{} are free",
                        is_little ? "a run of a model of 110 million parameters takes about 5 GiB: make room, or "
                                    "choose another directory with --output"
                                  : "",
                        std::vector{bytes}, Quantity::bytes}};
  if (!has_files_left) {
    findings.push_back({Level::error, "output", "no more files can be created there (no free inodes)",
                        "remove some, or choose another directory with --output"});
  }
  return findings;
}

Trial try_directory(const fs::path& directory) {
  const fs::path first = path_of(trial_file, directory), second = path_of(renamed_file, directory);
  const int descriptor = ::open(first.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return {.failed = "make a file", .error = errno};
  Trial trial = try_file(descriptor, first, second);
  ::close(descriptor);
  for (Scrap* scrap : {&trial_file, &renamed_file}) remove_once(*scrap);
  return trial;
}

Findings trial_findings(const Trial& trial) {
  if (!trial.failed.empty()) {
    return {{Level::error, "output", fmt::format("cannot {} there: {}", trial.failed, std::strerror(trial.error)),
             trial_advice(trial.error)}};
  }
  constexpr double slow = 20e6;
  const double rate = static_cast<double>(trial_bytes) / std::max(trial.seconds, 1e-9);
  Findings findings = {
      {rate < slow ? Level::warning : Level::ok, "output",
       fmt::format("a file of {} written and synchronised at {{}} by one rank per node, and renamed",
                   bytes_text(trial_bytes)),
       rate < slow ? "checkpoints will be slow: choose a faster file system, or save less often (--checkpoint-every)"
                   : "",
       std::vector{rate}, Quantity::bytes_per_second}};
  if (trial.lock_error != 0) {
    findings.push_back({Level::warning, "output", fmt::format("no file locks: {}", std::strerror(trial.lock_error)),
                        "do not let two runs write to the same directory"});
  }
  return findings;
}

void remove_scraps() {
  for (Scrap* scrap : {&trial_file, &renamed_file, &shared_file}) remove_once(*scrap);
}

ScrapGuard::ScrapGuard() : previous_(remove_scraps_and_end) {}

std::string write_probe(const fs::path& directory) {
  const fs::path path = path_of(shared_file, directory);
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) return {};
  ::fsync(descriptor);
  ::close(descriptor);
  return path.filename().string();
}

Findings probe_findings() { return {{Level::ok, "shared", shared_text}}; }

Findings probe_findings(const fs::path& directory, const std::string& name, const std::string& writer, double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const auto waited = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  const auto is_seen = [&] {
    // Listing the directory makes NFS query its server again.
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(directory, ignored)) {
      if (entry.path().filename() == name) return true;
    }
    return false;
  };
  bool seen = is_seen();
  for (; !seen && waited() < seconds; seen = is_seen()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  if (!seen) {
    return {{Level::error, "shared",
             fmt::format("{} does not show a file that {} wrote {:.0f} s ago", directory.string(), writer, seconds),
             "nodes see different directories there: use --output with a directory on a shared file system"}};
  }
  constexpr double late = 1.0;
  if (waited() < late) return probe_findings();
  return {{Level::ok, "shared", "the first rank's file was seen only after {}", "", std::vector{waited()},
           Quantity::seconds}};
}

}  // namespace mylos::app
