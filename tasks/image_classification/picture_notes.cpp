#include "tasks/image_classification/picture_notes.hpp"

#include "core/base/error.hpp"
#include "core/base/text/quantities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace mylos::tasks {

PictureNotes::PictureNotes(std::string option, std::filesystem::path path, data::ImageSet& set, std::size_t threads,
                           bool skips_damaged)
    : option_(std::move(option)), path_(std::move(path)), set_(set), threads_(threads) {
  set_.keep_marks(skips_damaged);
}

void PictureNotes::add(std::string_view taken) {
  is_saved = false;
  check(set_.marks()->add(taken));
}

std::string PictureNotes::text() {
  for (std::size_t i = 0; i < set_.size(); ++i) {
    if (const auto checksum = set_.checksum(i)) set_.marks()->note(i, data::mark_of(*checksum));
  }
  set_.marks()->take_noted();  // all of it is in the text
  return set_.marks()->text();
}

void PictureNotes::restore(const std::string& text, const std::filesystem::path& file) {
  ensure(
      set_.marks()->read(text),
      fmt::format("{} is damaged; remove it to go on without comparing the pictures of --{}", file.string(), option_));
}

/// Pictures that are read again at start. If all have new times, because they were copied, the others are compared when
/// they are next read.
constexpr std::size_t most_read_again = 4096;

/// Returns whether a picture is the one that was read before. Reads it if its file may have changed. Pictures whose
/// file has no recorded time, such as those of a prepared file, are compared when they are next read.
bool PictureNotes::is_same(std::size_t index) {
  const data::ImageMark mark = (*set_.marks())[index];
  if (mark.checksum == 0) return true;
  if (const auto checksum = set_.checksum(index)) return set_.marks()->note(index, data::mark_of(*checksum));
  const std::filesystem::path file = set_.file(index);
  if (file.empty() || mark.stamp == 0 || mark.stamp == data::file_stamp(file)) return true;
  if (read_again_++ >= most_read_again) return true;
  std::string bytes;
  return set_.marks()->note(index, data::read_marked(file, bytes));
}

void PictureNotes::compare() {
  std::vector<std::size_t> differing;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < set_.size(); i = next++) {
      bool same = false;
      try {
        same = is_same(i);
      } catch (const std::runtime_error&) {  // it can no longer be read
      }
      if (same) continue;
      const std::lock_guard lock(mutex);
      differing.push_back(i);
    }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < threads_; ++i) threads.emplace_back(work);
    } catch (const std::system_error&) {  // fewer threads will do
    }
    work();
  }
  std::ranges::sort(differing);
  check(differing);
}

void PictureNotes::check(const std::vector<std::size_t>& differing) const {
  if (differing.empty()) return;
  fail(
      fmt::format("--{} {}: {} differ from those that the run read before, the first: {}; restore them, or start over "
                  "with another --output or --overwrite --resume never",
                  option_, path_.string(), count_of(differing.size(), "picture"), set_.location(differing.front())));
}

std::string PictureNotes::damage_text() const {
  const std::vector<std::size_t> damaged = set_.marks()->damaged();
  if (damaged.empty()) return {};
  return fmt::format("{}: {} {}, the first: {}", path_.string(), count_of(damaged.size(), "damaged picture"),
                     option_ == "train" ? "replaced by the next ones of the epoch" : "left out of the scores",
                     set_.location(damaged.front()));
}

}  // namespace mylos::tasks
