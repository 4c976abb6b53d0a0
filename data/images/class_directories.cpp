#include "data/images/class_directories.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/error.hpp"
#include "core/base/files.hpp"

namespace mylos::data {
namespace {

namespace fs = std::filesystem;

/// Returns the entries of a directory, sorted by name, without hidden ones. Throws with its path if it cannot be read.
std::vector<DirectoryEntry> entries_of(const fs::path& directory) {
  std::vector<DirectoryEntry> entries = list_directory(directory);
  std::erase_if(entries, [](const DirectoryEntry& entry) { return entry.name.starts_with('.'); });
  return entries;
}

void check_ending(const fs::path& file) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  if (ending == ".jpg" || ending == ".jpeg" || ending == ".png") return;
  fail(
      fmt::format("{} is not named .jpg, .jpeg or .png: move it out of the class directories, or let `mylos prepare` "
                  "leave it out",
                  file.string()));
}

class ClassDirectories : public ImageSet {
 public:
  ClassDirectories(fs::path directory, bool check_names) : directory_(std::move(directory)) {
    for (const DirectoryEntry& entry : entries_of(directory_)) {
      if (entry.kind == EntryKind::directory) add_class(directory_ / entry.name, check_names);
    }
    if (label_names_.empty()) {
      fail(fmt::format("{} has no class directories, and no files of CIFAR or MNIST by their official names",
                       directory_.string()));
    }
  }

  std::string name(std::size_t index) const override {
    return label_names_[static_cast<std::size_t>(label(index))] + '/' + files_[index];
  }
  std::string location(std::size_t index) const override { return (directory_ / name(index)).string(); }
  std::string encoded(std::size_t index) const override { return read_text(directory_ / name(index)); }

 private:
  void add_class(const fs::path& path, bool check_names) {
    const std::size_t before = files_.size();
    for (const DirectoryEntry& entry : entries_of(path)) {
      const fs::path file = path / entry.name;
      if (entry.kind == EntryKind::directory) {
        fail(
            fmt::format("{} is a directory inside a class directory; name the directory whose directories are the "
                        "classes",
                        file.string()));
      }
      if (entry.kind == EntryKind::other) fail(fmt::format("{} is not a file", file.string()));
      if (check_names) check_ending(file);
      files_.push_back(entry.name);
    }
    ensure(files_.size() > before, fmt::format("{}: a class directory without images", path.string()));
    labels_.resize(files_.size(), static_cast<std::int32_t>(label_names_.size()));
    label_names_.push_back(path.filename().string());
  }

  fs::path directory_;
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<ImageSet> open_class_directories(const fs::path& directory, bool check_names) {
  return std::make_unique<ClassDirectories>(directory, check_names);
}

}  // namespace mylos::data
