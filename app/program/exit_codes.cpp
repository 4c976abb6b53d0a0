#include "app/program/exit_codes.hpp"

#include "app/program/out_of_memory.hpp"
#include "core/base/standard_output.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace mylos::app {

int report_exception(bool tells, const std::string& who) {
  const auto report = [&](const std::string& message, int exit_code) {
    if (tells) log_line(fmt::format("mylos: error: {}{}", who, message));
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
    return report(is_refused ? no_thread_text(error.what()) : error.what(), failure);
  } catch (const std::exception& error) {
    return report(translated_allocation_failure(error.what()).value_or(error.what()), failure);
  }
}

}  // namespace mylos::app
