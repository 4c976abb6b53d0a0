#include "core/base/file_copies.hpp"

#include "core/base/error.hpp"

namespace mylos {
namespace {

struct Copies {
  FileCopies* kept = nullptr;
  std::size_t most_bytes = 0;
  const FileCopies* used = nullptr;
};
thread_local Copies copies_of_thread;

void set_copies(const Copies& copies) {
  require(copies_of_thread.kept == nullptr && copies_of_thread.used == nullptr, "copies of files are in use already");
  copies_of_thread = copies;
}

template <class Value>
const Value* find_copy(const std::map<std::string, Value>& values, const std::filesystem::path& path) {
  const auto found = values.find(path.string());
  return found == values.end() ? nullptr : &found->second;
}

}  // namespace

KeepCopies::KeepCopies(FileCopies& copies, std::size_t most_bytes) {
  set_copies({.kept = &copies, .most_bytes = most_bytes});
}
KeepCopies::~KeepCopies() { copies_of_thread = {}; }

UseCopies::UseCopies(const FileCopies& copies) { set_copies({.used = &copies}); }
UseCopies::~UseCopies() { copies_of_thread = {}; }

const std::string* copy_of_text(const std::filesystem::path& path) {
  return copies_of_thread.used == nullptr ? nullptr : find_copy(copies_of_thread.used->texts, path);
}

const std::string* copy_of_values(const std::filesystem::path& path) {
  return copies_of_thread.used == nullptr ? nullptr : find_copy(copies_of_thread.used->values, path);
}

const std::vector<DirectoryEntry>* copy_of_directory(const std::filesystem::path& path) {
  return copies_of_thread.used == nullptr ? nullptr : find_copy(copies_of_thread.used->directories, path);
}

void keep_copy(const std::filesystem::path& path, const std::string& text) {
  if (copies_of_thread.kept == nullptr || text.size() > copies_of_thread.most_bytes) return;
  copies_of_thread.kept->texts[path.string()] = text;
}

void keep_copy(const std::filesystem::path& path, const std::vector<DirectoryEntry>& entries) {
  if (copies_of_thread.kept != nullptr) copies_of_thread.kept->directories[path.string()] = entries;
}

void keep_values(const std::filesystem::path& path, const std::function<std::string()>& bytes) {
  if (copies_of_thread.kept != nullptr) copies_of_thread.kept->values[path.string()] = bytes();
}

}  // namespace mylos
