#include "app/doctor/doctor_limits.hpp"

#include "core/base/threads.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace mylos::app {

bool LimitedChecks::run(Findings& found, const char* name, const std::string& what, double fraction,
                        std::function<Findings()> check) {
  const auto promise = std::make_shared<std::promise<Findings>>();
  std::future<Findings> result = promise->get_future();
  start_thread([promise, name = std::string(name), check = std::move(check)] {
    try {
      promise->set_value(check());
    } catch (const std::exception& error) {
      promise->set_value({{Level::error, name, error.what()}});
    }
  }).detach();
  const double seconds = fraction * limit_;
  const bool has_come_back = result.wait_for(std::chrono::duration<double>(seconds)) == std::future_status::ready;
  if (has_come_back) {
    append(found, result.get());
  } else {
    has_left_threads_ = true;
    found.push_back({Level::error, name, fmt::format("{} did not finish within {:.3g} s", what, seconds),
                     "a server or a device does not respond: ask the site, or use another node"});
  }
  return has_come_back;
}

}  // namespace mylos::app
