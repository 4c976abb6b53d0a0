#include "core/base/process/process.hpp"

#include "core/base/stable_hash.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <random>

namespace mylos {

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "localhost";
}

std::string unique_key() {
  static std::atomic<unsigned> calls = 0;
  std::random_device random;
  const auto time = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format("{:016x}",
                     stable_hash(fmt::format("{} {} {} {} {}", host_name(), ::getpid(), ++calls, time, random())));
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace mylos
