#include "tests/support/paths.hpp"

#include <algorithm>
#include <cstdlib>

namespace mylos::tests {

namespace {

std::filesystem::path from_environment(const char* variable, const std::filesystem::path& otherwise) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' ? std::filesystem::path(value) : otherwise;
}

}  // namespace

std::filesystem::path source_dir() { return from_environment("MYLOS_SOURCE", MYLOS_SOURCE_DIR); }

std::filesystem::path program() { return from_environment("MYLOS_PROGRAM", MYLOS_BUILT_PROGRAM); }

std::filesystem::path file_faults_library() { return MYLOS_FILE_FAULTS; }

std::filesystem::path golden_data() { return source_dir() / "tests" / "golden"; }

std::filesystem::path uncased_vocabulary() { return golden_data() / "vocabulary" / "bert-base-uncased.txt"; }

std::filesystem::path shared_data() { return from_environment("MYLOS_DATA", source_dir() / ".." / "shared" / "data"); }

std::filesystem::path shared_reference() {
  return from_environment("MYLOS_REFERENCE", source_dir() / ".." / "shared" / "reference");
}

std::vector<std::filesystem::path> recorded_models(const std::string& family) {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders;
  for (const fs::path& all : {golden_data() / "reference" / family, shared_reference() / family}) {
    for (const auto& entry : fs::is_directory(all) ? fs::directory_iterator(all) : fs::directory_iterator()) {
      if (fs::exists(entry.path() / "batch.safetensors")) folders.push_back(entry.path());
    }
  }
  std::ranges::sort(folders);
  return folders;
}

}  // namespace mylos::tests
