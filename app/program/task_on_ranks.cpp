#include "app/program/task_on_ranks.hpp"

#include "app/program/on_ranks.hpp"
#include "parallel/communicator/agreement.hpp"
#include "parallel/communicator/file_work.hpp"
#include "parallel/communicator/value_broadcast.hpp"
#include "tasks/interface/attention_choice.hpp"

#include <optional>
#include <string>
#include <utility>

namespace mylos::app {

TaskOnRanks make_task(parallel::Communicator& ranks, const tasks::TaskKind& kind, const tasks::RunConfig& run,
                      const Notice& notice) {
  std::unique_ptr<tasks::Task> task;
  on_all_ranks_with_copies(ranks, [&] {
    const parallel::FileWork loading;
    task = kind.make_without_data(run, notice);
  });
  parallel::on_first_rank(ranks, [&] { task->read_data(); });
  const std::string remark = parallel::broadcast_values(
      ranks, [&](ByteWriter& bytes) { task->write_data(bytes); },
      [&](ByteReader& bytes) { task->receive_data(bytes); });
  if (!remark.empty()) notice(remark);
  train::AttentionSelection attention = choose_attention(ranks, run, *task, notice);
  return {std::move(task), std::move(attention)};
}

train::AttentionSelection choose_attention(parallel::Communicator& ranks, const tasks::RunConfig& run,
                                           tasks::Task& task, const Notice& notice) {
  const std::optional<train::AttentionRequest> request = tasks::attention_request(run, task, ranks.size());
  if (!request) return {};
  train::AttentionSelection selection = train::select_attention(ranks, *request, notice);
  if (selection.kernel != task.attention()->shape.kernel) task.set_attention(selection.kernel);
  if (const std::string line = tasks::attention_line(selection); !line.empty() && !request->asked) notice(line);
  return selection;
}

}  // namespace mylos::app
