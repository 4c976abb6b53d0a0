#include "data/images/class_directories.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"

namespace mylos::data {
namespace {

namespace fs = std::filesystem;

/// Returns the entries of a directory, sorted by name, without hidden ones. Throws with its path if it cannot be read.
std::vector<DirectoryEntry> entries_of(const FileReader& files, const fs::path& directory) {
  std::vector<DirectoryEntry> entries = files.list_directory(directory);
  std::erase_if(entries, [](const DirectoryEntry& entry) { return entry.name.starts_with('.'); });
  return entries;
}

bool is_named_as_image(const fs::path& file) {
  std::string ending = file.extension().string();
  std::ranges::transform(ending, ending.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
}

class ClassDirectories : public ImageSet {
 public:
  ClassDirectories(const FileReader& files, fs::path directory) : directory_(std::move(directory)) {
    for (const DirectoryEntry& entry : entries_of(files, directory_)) {
      if (entry.kind == EntryKind::directory) add_class(files, directory_ / entry.name);
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
  std::string encoded(std::size_t index) const override { return read_text(file(index)); }
  fs::path file(std::size_t index) const override { return directory_ / name(index); }

 private:
  void add_class(const FileReader& files, const fs::path& path) {
    const std::size_t before = files_.size();
    for (const DirectoryEntry& entry : entries_of(files, path)) {
      const fs::path file = path / entry.name;
      if (entry.kind == EntryKind::directory) {
        fail(
            fmt::format("{} is a directory inside a class directory; name the directory whose directories are the "
                        "classes",
                        file.string()));
      }
      if (!is_named_as_image(file)) {
        if (passed_over_.files++ == 0) passed_over_.first = file.string();
        continue;
      }
      if (entry.kind == EntryKind::other) fail(fmt::format("{} is not a file", file.string()));
      files_.push_back(entry.name);
    }
    ensure(files_.size() > before,
           fmt::format("{}: a class directory without files named .jpg, .jpeg or .png", path.string()));
    labels_.resize(files_.size(), static_cast<std::int32_t>(label_names_.size()));
    label_names_.push_back(path.filename().string());
  }

  fs::path directory_;
  std::vector<std::string> files_;
};

}  // namespace

std::unique_ptr<ImageSet> open_class_directories(const FileReader& files, const fs::path& directory) {
  return std::make_unique<ClassDirectories>(files, directory);
}

}  // namespace mylos::data
