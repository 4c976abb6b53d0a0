#include "parallel/checkpoint/checkpoint_directory.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/files/positioned_file.hpp"
#include "core/base/process/process.hpp"
#include "core/base/setting_error.hpp"
#include "core/base/text/quantities.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "parallel/checkpoint/frozen_file.hpp"
#include "parallel/checkpoint/whole_checkpoints.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>

namespace mylos::parallel {
namespace {

namespace fs = std::filesystem;

constexpr const char* latest_name = "latest";
constexpr std::string_view step_prefix = "step-", frozen_prefix = "frozen-", suffix = ".h5", unfinished_suffix = ".tmp";
constexpr std::size_t longest_name = 64;  // maximum length of a checkpoint's file name

std::optional<std::size_t> step_of(std::string_view name, std::string_view prefix = step_prefix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  const std::string_view digits = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::size_t step = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (digits.empty() || code != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return step;
}

void rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_with_errno("write", to, errno);
}

/// Makes `latest` name the checkpoint `name`. The file is replaced atomically.
void write_latest(const fs::path& directory, const fs::path& name) {
  const fs::path target = directory / latest_name, temporary = unfinished_name(target);
  PositionedFile file(temporary, PositionedFile::Use::create);
  const std::string text = name.string() + "\n";
  file.write(0, std::as_bytes(std::span(text)));
  file.sync_and_close();
  rename_file(temporary, target);
  sync_directory(directory);
}

/// Returns the file that `latest` names; nullopt if it does not exist.
std::optional<fs::path> read_latest(const fs::path& directory) {
  std::error_code unreadable;  // in that case the last step is used
  if (!fs::is_regular_file(directory / latest_name, unreadable)) return std::nullopt;
  const PositionedFile file(directory / latest_name, PositionedFile::Use::read);
  std::string text(std::min<std::size_t>(file.size(), longest_name), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  const std::string name = text.substr(0, text.find('\n'));
  if (!step_of(name) || !fs::is_regular_file(directory / name, unreadable)) return std::nullopt;
  return directory / name;
}

void remove_file(const fs::path& file) {
  std::error_code code;
  fs::remove(file, code);
  if (code) fail(fmt::format("cannot remove {}: {}", file.string(), code.message()));
}

/// Removes all but the newest `keep` intact checkpoints of `entries`, the last of which has just been written. A
/// damaged one is kept until `keep` newer ones are intact. All ranks wait while a checkpoint is read completely. That
/// is done only between the last entry and the one that this process resumed from; after resuming from an older
/// checkpoint by hand, damaged ones are there. For older entries only the structure is read.
void remove_oldest(std::span<const CheckpointEntry> entries, std::size_t keep) {
  if (entries.size() <= keep) return;
  std::size_t whole = 1;
  bool is_older = false;  // older than a checkpoint known to be intact
  for (auto entry = std::next(entries.rbegin()); entry != entries.rend(); ++entry) {  // clang 14 has no views::reverse
    if (whole == keep) {
      remove_file(entry->file);
    } else if (is_older ? has_whole_structure(entry->file) : is_whole(entry->file)) {
      ++whole;
      is_older = true;
    }
  }
}

/// Returns the files whose names are a prefix and a step, in the order of steps.
std::vector<CheckpointEntry> list_files(const fs::path& directory, std::string_view prefix) {
  std::vector<CheckpointEntry> entries;
  std::error_code code;
  if (!fs::exists(directory, code)) return entries;
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code)) {
    const auto step = step_of(entry->path().filename().string(), prefix);
    if (step) entries.push_back({*step, entry->path()});
  }
  if (code) fail(fmt::format("cannot read {}: {}", directory.string(), code.message()));
  std::ranges::sort(entries, {}, &CheckpointEntry::step);
  return entries;
}

/// Returns the files that may be checkpoints, whatever their names, the latest steps first: users keep copies.
std::vector<fs::path> possible_checkpoints(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(frozen_prefix) && (step_of(name) || is_hdf5_file(entry.path())))
      files.push_back(entry.path());
  }
  std::ranges::sort(files, std::greater());
  return files;
}

/// Removes the files of frozen values that no checkpoint names. All stay while a checkpoint cannot be read.
void remove_unnamed_frozen(const fs::path& directory) {
  std::set<fs::path> unnamed;
  for (const CheckpointEntry& entry : list_files(directory, frozen_prefix)) unnamed.insert(entry.file.filename());
  try {
    if (unnamed.empty()) return;
    for (const fs::path& file : possible_checkpoints(directory)) {
      unnamed.erase(recorded_frozen(read_checkpoint_record(file), file).name);
      if (unnamed.empty()) return;
    }
  } catch (const std::exception&) {  // the message is for users who resume from the file
    return;
  }
  for (const fs::path& name : unnamed) remove_file(directory / name);
}

/// Removes the checkpoints of later steps, which another branch of the run left, and those before the newest `keep`.
void remove_others(const fs::path& directory, std::size_t step, std::size_t keep) {
  std::vector<CheckpointEntry> entries = list_checkpoints(directory);
  const auto later = std::ranges::upper_bound(entries, step, {}, &CheckpointEntry::step);
  for (auto entry = later; entry != entries.end(); ++entry) remove_file(entry->file);
  entries.erase(later, entries.end());
  remove_oldest(entries, keep);
  remove_unnamed_frozen(directory);
}

/// Returns the message of the exception that `work` throws; empty if it throws none.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

/// Returns the number of the save that wrote `file`; nullopt if the file is damaged.
std::optional<std::uint64_t> save_of(const fs::path& file) {
  try {
    const CheckpointRecord record = read_checkpoint_record(file);
    return record.has(save_number) ? record.integer(save_number) : 0;
  } catch (const std::exception&) {  // the message is for users who resume from the file
    return std::nullopt;
  }
}

/// Returns true if `entry` is of a later step than the checkpoint that `latest` names, and was written after it. A
/// checkpoint of another branch of the run may also be of a later step, but was written before.
bool supersedes(const CheckpointEntry& entry, const fs::path& named) {
  if (entry.step <= step_of(named.filename().string())) return false;
  const std::optional<std::uint64_t> later = save_of(entry.file), latest = save_of(named);
  if (!later || !latest) return false;
  if (*later != 0 || *latest != 0) return *later > *latest;
  // Earlier versions did not number their saves.
  std::error_code entry_unknown, latest_unknown;
  const auto written = fs::last_write_time(entry.file, entry_unknown);
  const auto latest_written = fs::last_write_time(entry.file.parent_path() / latest_name, latest_unknown);
  return !entry_unknown && !latest_unknown && written > latest_written;
}

}  // namespace

fs::path checkpoint_file_name(std::size_t step) { return fmt::format("{}{:06}{}", step_prefix, step, suffix); }

fs::path frozen_file_name(std::size_t step) { return fmt::format("{}{:06}{}", frozen_prefix, step, suffix); }

bool is_frozen_file_name(std::string_view name) { return step_of(name, frozen_prefix).has_value(); }

fs::path new_frozen_file(const fs::path& directory, std::size_t step) {
  while (fs::exists(directory / frozen_file_name(step))) ++step;
  return directory / frozen_file_name(step);
}

fs::path unfinished_name(const fs::path& file) {
  return fmt::format("{}.{}{}", file.string(), unique_key(), unfinished_suffix);
}

fs::path checkpoints_directory(const fs::path& path) {
  std::error_code unreadable;  // reported when the directory is listed
  return fs::is_directory(path / checkpoints_name, unreadable) ? path / checkpoints_name : path;
}

std::vector<CheckpointEntry> list_checkpoints(const fs::path& directory) { return list_files(directory, step_prefix); }

std::uint64_t last_save(const fs::path& directory) {
  std::uint64_t last = 0;
  for (const CheckpointEntry& entry : list_checkpoints(directory))
    last = std::max(last, save_of(entry.file).value_or(0));
  return last;
}

fs::path resolve_checkpoint(const fs::path& path) {
  std::error_code unreadable;  // reported when the file is opened
  if (fs::exists(path, unreadable) && !fs::is_directory(path, unreadable)) return path;
  const fs::path directory = checkpoints_directory(path);
  const std::vector<CheckpointEntry> entries = list_checkpoints(directory);
  const auto latest = read_latest(directory);
  if (latest && (entries.empty() || !supersedes(entries.back(), *latest))) return *latest;
  return entries.empty() ? fs::path() : entries.back().file;
}

void publish_file(const fs::path& unfinished, const fs::path& file) {
  rename_file(unfinished, file);
  sync_directory(file.parent_path());
}

std::string publish_checkpoint(const fs::path& unfinished, const fs::path& directory, std::size_t step,
                               std::size_t keep) {
  const fs::path name = checkpoint_file_name(step);
  publish_file(unfinished, directory / name);
  note_whole(directory / name);
  const std::string unnamed = error_of([&] { write_latest(directory, name); });
  const std::string kept = error_of([&] { remove_others(directory, step, keep); });
  return unnamed + (unnamed.empty() || kept.empty() ? "" : "; ") + kept;
}

void withdraw_checkpoint(const fs::path& directory, std::size_t step) {
  const std::vector<CheckpointEntry> entries = list_checkpoints(directory);
  const auto is_other = [step](const CheckpointEntry& entry) { return entry.step != step; };
  const auto other = std::find_if(entries.rbegin(), entries.rend(), is_other);
  // Remove the file first: while it exists, a run would resume from it if its step is later than that of `latest`.
  remove_file(directory / checkpoint_file_name(step));
  sync_directory(directory);
  if (other != entries.rend()) write_latest(directory, other->file.filename());
  remove_unnamed_frozen(directory);
}

void clear_unfinished(const fs::path& directory) {
  std::error_code code;
  fs::create_directories(directory, code);
  if (code) fail(fmt::format("cannot create {}: {}", directory.string(), code.message()));
  sync_directory(fs::absolute(directory).parent_path());
  for (fs::directory_iterator entry(directory, code), end; !code && entry != end; entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    const bool is_ours =
        name.starts_with(step_prefix) || name.starts_with(frozen_prefix) || name.starts_with(latest_name);
    const bool is_unfinished = is_ours && name.ends_with(unfinished_suffix);
    if (is_unfinished || name.starts_with(probe_prefix)) remove_file(entry->path());
  }
  if (code) fail(fmt::format("cannot read {}: {}", directory.string(), code.message()));
  remove_unnamed_frozen(directory);
}

void check_checkpoint_space(const fs::path& directory, const CheckpointBytes& bytes, std::size_t kept) {
  std::error_code unknown;
  const fs::space_info space = fs::space(directory, unknown);
  if (unknown) return;
  std::size_t taken = 0;
  for (const CheckpointEntry& entry : list_checkpoints(directory)) taken += fs::file_size(entry.file, unknown);
  const std::size_t wanted = (kept + 1) * bytes.each;
  const std::size_t frozen = list_files(directory, frozen_prefix).empty() ? bytes.frozen : 0;
  const std::size_t needed = std::max(wanted - std::min(wanted, taken), bytes.each) + frozen;
  if (space.available >= needed) return;
  fail(fmt::format(
      "{}: the {} checkpoints that are kept{} and the one being written need {} more, but {} are free; make room, or "
      "choose a smaller {}, another {}, or {}",
      directory.string(), kept, frozen > 0 ? ", the frozen tensors" : "", bytes_text(needed),
      bytes_text(space.available), setting("keep"), setting("output"), setting("checkpoint-every", "never")));
}

}  // namespace mylos::parallel
