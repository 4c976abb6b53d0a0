#include "train/engine/data_notes.hpp"

#include "core/base/files/files.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"
#include "parallel/communicator/agreement.hpp"

namespace mylos::train {

std::filesystem::path notes_file(const std::filesystem::path& output, const std::string& name) {
  return output / parallel::checkpoints_name / name;
}

void collect_notes(parallel::Communicator& ranks, const Task& task) {
  for (DataNotes* const notes : task.data_notes()) {
    std::string taken;
    parallel::gather_in_pieces(ranks, notes->take(), [&](std::string_view piece) { taken += piece; });
    parallel::on_first_rank(ranks, [&] {
      if (!taken.empty()) notes->add(taken);
    });
  }
}

void save_notes(parallel::Communicator& ranks, const Task& task, const std::filesystem::path& directory) {
  for (DataNotes* const notes : task.data_notes()) {
    parallel::on_first_rank(ranks, [&] {
      const std::filesystem::path file = directory / notes->file_name();
      if (notes->is_saved && std::filesystem::exists(file)) return;
      remove_abandoned(file);
      write_text(file, notes->text());
      notes->is_saved = true;
    });
  }
}

void resume_notes(parallel::Communicator& ranks, const Task& task, const std::filesystem::path& directory) {
  for (DataNotes* const notes : task.data_notes()) {
    const std::filesystem::path file = directory / notes->file_name();
    const std::string text =
        parallel::on_first_rank(ranks, [&] { return std::filesystem::exists(file) ? read_text(file) : std::string(); });
    if (text.empty()) continue;
    parallel::on_every_rank(ranks, [&] { notes->restore(text, file); });
    parallel::on_first_rank(ranks, [&] { notes->compare(); });
  }
}

}  // namespace mylos::train
