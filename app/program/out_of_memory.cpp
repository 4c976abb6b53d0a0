#include "app/program/out_of_memory.hpp"

#include "train/engine/memory.hpp"

#include <fmt/format.h>

#include <regex>

namespace mylos::app {

std::string out_of_memory_text(const std::string& wanted) {
  return fmt::format("out of memory{}{}{}; `mylos plan` says what a run needs", wanted.empty() ? "" : ": ", wanted,
                     train::address_space_note());
}

std::string no_thread_text(const std::string& reason) {
  return fmt::format("no thread could be started: {}{}; set OMP_NUM_THREADS to fewer, or see ulimit -u and ulimit -v",
                     reason, train::address_space_note());
}

std::optional<std::string> translated_allocation_failure(const std::string& message) {
  static const std::regex words(
      R"words(Kokkos ERROR: .* memory space failed to allocate (.*) \(label="([^"]*)"\))words");
  std::smatch match;
  if (!std::regex_search(message, match, words)) return std::nullopt;
  return match.prefix().str() + out_of_memory_text(fmt::format("{} for {}", match[1].str(), match[2].str()));
}

}  // namespace mylos::app
