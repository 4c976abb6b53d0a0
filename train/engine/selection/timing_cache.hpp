#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// Caches what timings showed between runs.
namespace mylos::train {

/// Describes everything queryable that timings depend on: CPU, threads, device, providers of matrix products and their
/// versions. Kokkos must be initialized.
std::string timed_machine();

/// One file for each kind of machine and build. A file that cannot be read, or that comes from another machine, counts
/// as empty and is rewritten. Write errors are ignored.
class TimingCache {
 public:
  /// Uses a file in `directory` whose name begins with `name`; an empty path disables the cache.
  TimingCache(const std::filesystem::path& directory, std::string_view name, std::string machine);

  const std::filesystem::path& file() const { return file_; }
  /// Returns what was written last; nullopt if nothing was, or if the cache is disabled.
  std::optional<nlohmann::json> read() const;
  void write(const nlohmann::ordered_json& choice) const;

 private:
  std::filesystem::path file_;
  std::string machine_;
};

}  // namespace mylos::train
