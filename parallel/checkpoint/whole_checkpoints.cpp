#include "parallel/checkpoint/whole_checkpoints.hpp"

#include "parallel/checkpoint/checkpoint_file.hpp"

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;

/// Changes whenever the file does: device, inode, size, and time of the last modification.
using Stamp = std::array<std::int64_t, 5>;

std::optional<Stamp> stamp_of(const fs::path& file) {
  struct stat about {};
  if (::stat(file.c_str(), &about) != 0) return std::nullopt;
  return Stamp{static_cast<std::int64_t>(about.st_dev), static_cast<std::int64_t>(about.st_ino), about.st_size,
               about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
}

bool verifies(const fs::path& file) {
  try {
    verify_checkpoint(file);
    return true;
  } catch (const std::exception&) {  // the message is for users who resume from the file
    return false;
  }
}

struct Known {
  Stamp stamp;
  bool whole;
};
std::mutex known_mutex;
std::map<fs::path, Known> known;

void remember(const fs::path& file, bool whole) {
  const std::optional<Stamp> stamp = stamp_of(file);
  const std::lock_guard lock(known_mutex);
  if (stamp) known.insert_or_assign(file, Known{*stamp, whole});
}

std::optional<bool> recall(const fs::path& file) {
  const std::optional<Stamp> stamp = stamp_of(file);
  const std::lock_guard lock(known_mutex);
  const auto found = known.find(file);
  if (!stamp || found == known.end() || found->second.stamp != *stamp) return std::nullopt;
  return found->second.whole;
}

}  // namespace

bool has_whole_structure(const fs::path& file) {
  if (const std::optional<bool> whole = recall(file)) return *whole;
  try {
    read_checkpoint_index(file);
    return true;
  } catch (const std::exception&) {  // the message is for users who resume from the file
    return false;
  }
}

void note_whole(const fs::path& file) { remember(file, true); }

void forget_whole(const fs::path& file) {
  const std::lock_guard lock(known_mutex);
  known.erase(file);
}

void forget_whole() {
  const std::lock_guard lock(known_mutex);
  known.clear();
}

bool is_whole(const fs::path& file) {
  if (const std::optional<bool> whole = recall(file)) return *whole;
  const bool whole = verifies(file);
  remember(file, whole);
  return whole;
}

}  // namespace mylos::parallel
