#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// What scripts/record wrote to tests/golden, and the digest it uses.
namespace mylos::tests {

/// tests/golden/<name> as one JSON value, or as one JSON value a line.
nlohmann::json golden_json(const std::string& name);
std::vector<nlohmann::json> golden_lines(const std::string& name);

/// The lines of tests/golden/<name> that were recorded from files of the tree, or those from shared data: "data" names
/// the file.
std::vector<nlohmann::json> golden_lines_of(bool in_tree, const std::string& name);

/// The file of questions that a recording calls `name`: "examples/..." lies in the tree, any other below shared_data(),
/// where it may be absent. scripts/record/common.py finds them in the same way.
std::filesystem::path recorded_questions(const std::string& name);

/// FNV-1a over integers, each as 4 bytes, low byte first: scripts/record/common.py's.
class Digest {
 public:
  void add(std::int64_t value);
  std::string hexadecimal() const;

 private:
  std::uint64_t state_ = 0xCBF29CE484222325U;
};

}  // namespace mylos::tests
