#include "app/exit_codes.hpp"

#include "app/standard_output.hpp"
#include "app/usage_error.hpp"

#include <fmt/format.h>

#include <exception>
#include <new>

namespace mylos::app {

int report_exception(bool tells, const std::string& who) {
  const auto report = [&](const char* message, int exit_code) {
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
    return report("out of memory", failure);
  } catch (const std::exception& error) {
    return report(error.what(), failure);
  }
}

}  // namespace mylos::app
