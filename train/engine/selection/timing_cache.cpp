#include "train/engine/selection/timing_cache.hpp"

#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/process/processors.hpp"
#include "core/base/stable_hash.hpp"
#include "core/device.hpp"
#include "core/kernels/products/gemm.hpp"
#include "core/kernels/products/gemm_provider.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace mylos::train {

std::string timed_machine() {
  std::string text = fmt::format("cpu{} cpus {} {} threads {}", processor_name(), std::thread::hardware_concurrency(),
                                 ExecutionSpace::name(), ExecutionSpace().concurrency());
  if (const auto device = device_in_use()) text += "; " + device->name;
  for (const std::string& name : gemm_providers()) {
    text += fmt::format("; {} {}", name, make_gemm_provider(name)->version());
  }
  return text;
}

TimingCache::TimingCache(const std::filesystem::path& directory, std::string_view name, std::string machine)
    : machine_(std::move(machine)) {
  if (directory.empty()) return;
  file_ = directory / fmt::format("{}-{:016x}.json", name, stable_hash(machine_));
}

std::optional<nlohmann::json> TimingCache::read() const {
  std::error_code absent;
  if (file_.empty() || !std::filesystem::exists(file_, absent)) return std::nullopt;
  try {
    const Json file = read_json(file_);
    const JsonLocation location("cache");
    if (string_member(file, "machine", location) != machine_) return std::nullopt;
    return member(file, "choice", location);
  } catch (const std::runtime_error&) {
    return std::nullopt;  // only a cache: measured again and rewritten
  }
}

void TimingCache::write(const nlohmann::ordered_json& choice) const {
  if (file_.empty()) return;
  try {
    std::filesystem::create_directories(file_.parent_path());
    write_text(file_, nlohmann::ordered_json{{"machine", machine_}, {"choice", choice}}.dump(1) + "\n");
  } catch (const std::runtime_error&) {
    // If the cache cannot be written (read-only or full home directory), the next start only loses a second.
  }
}

}  // namespace mylos::train
