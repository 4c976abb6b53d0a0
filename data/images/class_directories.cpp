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
std::vector<fs::directory_entry> entries_of(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  for (fs::directory_iterator i(directory, error), end; !error && i != end; i.increment(error)) {
    if (!i->path().filename().string().starts_with('.')) entries.push_back(*i);
  }
  if (error) fail_with_errno("read", directory, error.value());
  std::ranges::sort(entries, {}, [](const fs::directory_entry& entry) { return entry.path().filename().string(); });
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
    for (const auto& entry : entries_of(directory_)) {
      if (entry.is_directory()) add_class(entry.path(), check_names);
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
    for (const auto& entry : entries_of(path)) {
      if (entry.is_directory()) {
        fail(
            fmt::format("{} is a directory inside a class directory; name the directory whose directories are the "
                        "classes",
                        entry.path().string()));
      }
      if (entry.exists() && !entry.is_regular_file()) fail(fmt::format("{} is not a file", entry.path().string()));
      if (check_names) check_ending(entry.path());
      files_.push_back(entry.path().filename().string());
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
