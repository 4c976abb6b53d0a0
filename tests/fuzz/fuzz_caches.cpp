// Reads the files that one start saves for the next: choices of GEMM providers, timings of attention, calibrations,
// fetch records.

#include <stdexcept>

#include "app/bench/calibration.hpp"
#include "core/base/files/json.hpp"
#include "data/huggingface/fetch_record.hpp"
#include "tests/fuzz/inputs.hpp"
#include "train/engine/selection/attention_selection.hpp"
#include "train/engine/selection/gemm_selection.hpp"

namespace {

void read_choice(std::string_view text) {
  const auto choice = mylos::train::parse_gemm_choice(mylos::parse_json(text, "input"), "input");
  const std::string written = mylos::train::to_json(choice).dump();
  const auto again = mylos::train::parse_gemm_choice(mylos::parse_json(written, "written"), "written");
  mylos::tests::expect(again == choice, "a choice survives writing and reading");
}

void read_timings(std::string_view text) {
  const auto timings = mylos::train::parse_attention_timings(mylos::parse_json(text, "input"), "input");
  const std::string written = mylos::train::to_json(timings).dump();
  const auto again = mylos::train::parse_attention_timings(mylos::parse_json(written, "written"), "written");
  mylos::tests::expect(again == timings, "timings survive writing and reading");
}

void read_calibration(std::string_view text) {
  const mylos::tests::MemoryFile file(text);
  const mylos::app::Calibration calibration = mylos::app::read_calibration(file.path());
  mylos::tests::expect(calibration.flops > 0.0 && calibration.bandwidth > 0.0, "a machine has some speed");
  mylos::app::parse_calibration(mylos::app::to_json(calibration), "written");
}

void check_record(std::string_view text) {
  static const mylos::tests::InputDirectory directory;
  static const bool is_made = (directory.put("vocab.txt", "[PAD]\n"), true);
  mylos::tests::expect(is_made, "a file that was fetched");
  directory.put("fetched.json", text);
  mylos::data::check_fetch_record(directory.path());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  for (const auto read : {read_choice, read_timings, read_calibration, check_record}) {
    try {
      read(mylos::tests::as_text(bytes, size));
    } catch (const std::runtime_error&) {  // how bad input is rejected
    }
  }
  return 0;
}
