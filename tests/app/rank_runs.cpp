#include "tests/app/rank_runs.hpp"

#include "tests/support/waiting.hpp"

#include <chrono>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds between_looks(20);  // a look reads all of /proc

}  // namespace

const std::string& mpiexec() {
#ifdef MYLOS_MPIEXEC
  static const std::string program = MYLOS_MPIEXEC;
#else
  static const std::string program;
#endif
  return program;
}

std::vector<int> RankRuns::processes_of(const fs::path& output) {
  std::vector<std::pair<std::string, int>> found;  // by rank, from the launcher's variable
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    try {
      const std::string words = read_file(entry.path() / "cmdline");
      if (!words.starts_with(program().string()) || words.find(output.string() + '\0') == std::string::npos) continue;
      const std::string environment = read_file(entry.path() / "environ");
      const std::string key = "OMPI_COMM_WORLD_RANK=";
      const std::size_t at = environment.find(key);
      if (at == std::string::npos) continue;
      found.emplace_back(environment.substr(at + key.size(), environment.find('\0', at) - at - key.size()),
                         std::stoi(name));
    } catch (const std::exception&) {  // it has just ended
    }
  }
  std::ranges::sort(found);
  std::vector<int> processes;
  for (const auto& [rank, process] : found) processes.push_back(process);
  return processes;
}

std::vector<int> RankRuns::wait_for_ranks(const fs::path& output, std::size_t ranks) {
  std::vector<int> processes;
  wait_until([&] { return (processes = processes_of(output)).size() >= ranks; }, between_looks);
  return processes;
}

void RankRuns::wait_for_size(const fs::path& file, std::uintmax_t bytes) {
  wait_until([&] {
    std::error_code absent;
    const std::uintmax_t size = fs::file_size(file, absent);
    return !absent && size >= bytes;
  });
}

}  // namespace mylos::tests
