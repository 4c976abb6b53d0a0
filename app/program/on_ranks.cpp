#include "app/program/on_ranks.hpp"

#include "app/program/exit_codes.hpp"
#include "core/base/process/signals.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/value_broadcast.hpp"
#include "tasks/interface/attention_choice.hpp"

#include <fmt/format.h>

#include <exception>
#include <string>
#include <utility>

namespace mylos::app {
namespace {

/// Calls run(work), which throws errors of `work` on all ranks as SharedError. A UsageError becomes one on all ranks.
template <class Run>
void keep_usage_errors(parallel::Communicator& ranks, const std::function<void()>& work, const Run& run) {
  bool usage_error = false;
  try {
    run([&] {
      try {
        work();
      } catch (const UsageError&) {
        usage_error = true;
        throw;
      }
    });
  } catch (const parallel::SharedError& error) {
    if (parallel::maximum(ranks, usage_error ? 1 : 0) == 0) throw;
    throw UsageError(error.what());
  }
}

/// Does the work of on_ranks, except that the launch does not know the exit code yet.
int run_reported(parallel::Launch& launch, const std::function<int()>& work) {
  const std::size_t rank = launch.world().rank();
  const bool first = rank == 0, alone = launch.world().size() == 1;
  try {
    return work();
  } catch (const UsageError&) {
    return report_exception(first);
  } catch (const parallel::SharedError&) {
    return report_exception(first);
  } catch (const ReaderGone&) {
    return report_exception();
  } catch (const std::exception&) {
    const bool is_printed = alone || launch.announce_error();
    const int exit_code = report_exception(is_printed, alone ? "" : fmt::format("rank {}: ", rank));
    if (alone) return exit_code;
    PromptEnd::say_no_more();
    throw AlreadyReported{exit_code};
  }
}

}  // namespace

int on_ranks(parallel::Launch& launch, const std::function<int()>& work) {
  const int exit_code = run_reported(launch, work);
  PromptEnd::say_no_more();  // mpiexec sends SIGTERM to ranks that end later than one with an error
  launch.set_exit_code(exit_code);
  return exit_code;
}

void on_all_ranks(parallel::Communicator& ranks, const std::function<void()>& work) {
  keep_usage_errors(ranks, work, [&](const auto& noted) { parallel::on_every_rank(ranks, noted); });
}

void on_all_ranks_with_copies(parallel::Communicator& ranks, const std::function<void(const FileReader& files)>& work) {
  // A single rank needs no copies.
  if (ranks.size() == 1) return on_all_ranks(ranks, [&] { work(FileReader()); });
  constexpr std::size_t small_file = parallel::broadcast_piece;
  FileCopies copies;
  const bool is_first = ranks.rank() == 0;
  const FileReader files = is_first ? FileReader(copies, small_file) : FileReader(copies);
  keep_usage_errors(
      ranks, [&] { work(files); },
      [&](const auto& noted) {
        parallel::on_first_rank(ranks, noted);
        parallel::broadcast_values(
            ranks, [&](ByteWriter& bytes) { bytes.add(copies); }, [&](ByteReader& bytes) { bytes.read(copies); });
        parallel::on_every_rank(ranks, [&] {
          if (!is_first) noted();
        });
      });
}

TaskOnRanks make_task(parallel::Communicator& ranks, const tasks::TaskKind& kind, const tasks::RunConfig& run,
                      const Notice& notice) {
  std::unique_ptr<tasks::Task> task;
  on_all_ranks_with_copies(ranks, [&](const FileReader& files) {
    const parallel::FileWork loading;
    task = kind.make(files, run, notice);
  });
  parallel::on_first_rank(ranks, [&] { task->read_data(); });
  const std::string remark = parallel::broadcast_values(
      ranks, [&](ByteWriter& bytes) { task->write_data(bytes); },
      [&](ByteReader& bytes) { task->receive_data(bytes); });
  if (!remark.empty()) notice(remark);
  train::AttentionSelection attention = tasks::choose_attention(ranks, run, *task, notice);
  return {std::move(task), std::move(attention)};
}

}  // namespace mylos::app
