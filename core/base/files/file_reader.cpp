#include "core/base/files/file_reader.hpp"

namespace mylos {
namespace {

template <class Value>
const Value* find_copy(const std::map<std::string, Value>& values, const std::filesystem::path& path) {
  const auto found = values.find(path.string());
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace

std::string FileReader::read_text(const std::filesystem::path& path) const {
  const std::string* const copy = used_ == nullptr ? nullptr : find_copy(used_->texts, path);
  if (copy != nullptr) return *copy;
  std::string text = mylos::read_text(path);
  if (kept_ != nullptr && text.size() <= most_bytes_) kept_->texts[path.string()] = text;
  return text;
}

std::vector<DirectoryEntry> FileReader::list_directory(const std::filesystem::path& directory) const {
  const std::vector<DirectoryEntry>* const copy = used_ == nullptr ? nullptr : find_copy(used_->directories, directory);
  if (copy != nullptr) return *copy;
  std::vector<DirectoryEntry> entries = mylos::list_directory(directory);
  if (kept_ != nullptr) kept_->directories[directory.string()] = entries;
  return entries;
}

const std::string* FileReader::find_values(const std::filesystem::path& path) const {
  return used_ == nullptr ? nullptr : find_copy(used_->values, path);
}

}  // namespace mylos
