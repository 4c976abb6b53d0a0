#include "app/program/exit_codes.hpp"

#include "core/base/process/threads.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "train/engine/memory/memory.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <regex>
#include <string>
#include <system_error>

namespace mylos::app {
std::string out_of_memory_text(const std::string& wanted) {
  return fmt::format("out of memory{}{}{}; `mylos plan` shows how much a run needs", wanted.empty() ? "" : ": ", wanted,
                     train::address_space_note());
}

std::optional<std::string> translated_allocation_failure(const std::string& message) {
  static const std::regex words(
      R"words(Kokkos ERROR: .* memory space failed to allocate (.*) \(label="([^"]*)"\))words");
  std::smatch match;
  if (!std::regex_search(message, match, words)) return std::nullopt;
  return match.prefix().str() + out_of_memory_text(fmt::format("{} for {}", match[1].str(), match[2].str()));
}

int report_exception(bool prints, const std::string& who) {
  const auto report = [&](const std::string& message, int exit_code) {
    if (prints) log_line(fmt::format("mylos: error: {}{}", who, message));
    return exit_code;
  };
  try {
    throw;
  } catch (const ReaderGone&) {
    return success;
  } catch (const UsageError& error) {
    return report(error.what(), usage);
  } catch (const std::bad_alloc&) {
    return report(out_of_memory_text(), failure);
  } catch (const std::system_error& error) {
    const bool is_refused = error.code() == std::errc::resource_unavailable_try_again;  // the system refused a thread
    return report(is_refused ? no_thread_text() : error.what(), failure);
  } catch (const std::exception& error) {
    return report(translated_allocation_failure(error.what()).value_or(error.what()), failure);
  }
}

}  // namespace mylos::app
