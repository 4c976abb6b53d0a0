// A run's directory as read by report and watch: run.json up to the first zero byte, and metrics.jsonl after it.

#include <stdexcept>

#include "tests/fuzz/inputs.hpp"
#include "train/monitor/run_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;
  const std::string_view text = mylos::tests::as_text(bytes, size);
  const std::size_t end = text.find('\0');
  directory.put("run.json", text.substr(0, end));
  directory.put("metrics.jsonl", end == std::string_view::npos ? std::string_view() : text.substr(end + 1));
  try {
    const mylos::train::RunRecord record = mylos::train::read_run(directory.path());
    record.done_steps();
    record.planned_steps();
    record.seconds_left();
    record.recent_loss();
    record.metric_kinds();               // none in a file that says what its steps count, and lists no metrics
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
