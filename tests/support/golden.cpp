#include "tests/support/golden.hpp"

#include <fmt/format.h>

#include <sstream>

#include "tests/support/paths.hpp"
#include "tests/support/temporary.hpp"

namespace mylos::tests {

nlohmann::json golden_json(const std::string& name) { return nlohmann::json::parse(read_file(golden_data() / name)); }

std::vector<nlohmann::json> json_lines(const std::filesystem::path& path) {
  std::istringstream lines(read_file(path));
  std::vector<nlohmann::json> values;
  for (std::string line; std::getline(lines, line);) values.push_back(nlohmann::json::parse(line));
  return values;
}

std::vector<nlohmann::json> golden_lines(const std::string& name) { return json_lines(golden_data() / name); }

namespace {

bool is_in_tree(const std::string& name) { return name.starts_with("examples/"); }

}  // namespace

std::vector<nlohmann::json> golden_lines_of(bool in_tree, const std::string& name) {
  std::vector<nlohmann::json> lines = golden_lines(name);
  std::erase_if(lines, [&](const nlohmann::json& line) { return is_in_tree(line.at("data")) != in_tree; });
  return lines;
}

std::filesystem::path recorded_questions(const std::string& name) {
  return (is_in_tree(name) ? source_dir() : shared_data()) / name;
}

void Digest::add(std::int64_t value) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    state_ = (state_ ^ ((static_cast<std::uint64_t>(value) >> shift) & 0xFFU)) * 0x100000001B3U;
  }
}

std::string Digest::hexadecimal() const { return fmt::format("{:016x}", state_); }

}  // namespace mylos::tests
