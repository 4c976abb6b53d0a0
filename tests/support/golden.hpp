#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// Reads the files that lab/record wrote to tests/golden, and computes the digest that it uses.
namespace mylos::tests {

/// Returns the lines of a file, each of which is JSON.
std::vector<nlohmann::json> json_lines(const std::filesystem::path& path);
/// Reads tests/golden/<name> as one JSON value, or as one JSON value per line.
nlohmann::json golden_json(const std::string& name);
std::vector<nlohmann::json> golden_lines(const std::string& name);

/// Returns the lines of tests/golden/<name> that were recorded from files in the tree, or those from shared data.
/// "data" names the file.
std::vector<nlohmann::json> golden_lines_of(bool in_tree, const std::string& name);

/// Returns the path of the file of questions that a recording calls `name`: in the tree for "examples/...", otherwise
/// below shared_data(), where it may be missing. lab/record/common.py uses the same rule.
std::filesystem::path recorded_questions(const std::string& name);

/// FNV-1a over integers, each as 4 bytes, least significant first, as in lab/record/common.py.
class Digest {
 public:
  void add(std::int64_t value);
  std::string hexadecimal() const;

 private:
  std::uint64_t state_ = 0xCBF29CE484222325U;
};

}  // namespace mylos::tests
