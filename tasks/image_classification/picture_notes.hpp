#pragma once

#include "data/images/image_set.hpp"
#include "train/engine/task.hpp"

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>

namespace mylos::tasks {

/// Notes the CRC-32C of the pictures that a run reads, and which of them are damaged. Those of sets in memory and of
/// prepared files are all known at once. Sizes and times of files only tell which pictures to read again on resume.
class PictureNotes final : public train::DataNotes {
 public:
  /// `option` names the data `path` of `set`, which must outlive the notes. Reads pictures with `threads`.
  PictureNotes(std::string option, std::filesystem::path path, data::ImageSet& set, std::size_t threads,
               bool skips_damaged);

  static std::string file_name_of(const std::string& option) { return "pictures-" + option; }
  std::string file_name() const override { return file_name_of(option_); }
  std::string take() override { return set_.marks()->take_noted(); }
  void add(std::string_view taken) override;
  std::string text() override;
  void restore(const std::string& text, const std::filesystem::path& file) override;
  void compare() override;

  /// Returns a line about the damaged pictures that any rank has met; empty if there are none.
  std::string damage_text() const;

 private:
  bool is_same(std::size_t index);
  void check(const std::vector<std::size_t>& differing) const;

  std::string option_;
  std::filesystem::path path_;
  data::ImageSet& set_;
  std::size_t threads_;
  std::atomic<std::size_t> read_again_ = 0;
};

}  // namespace mylos::tasks
