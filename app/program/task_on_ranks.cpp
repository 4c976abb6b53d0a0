#include "app/program/task_on_ranks.hpp"

#include "app/program/on_ranks.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/value_broadcast.hpp"
#include "tasks/interface/attention_choice.hpp"

#include <string>
#include <utility>

namespace mylos::app {

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
