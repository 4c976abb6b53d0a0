#include "app/resumption.hpp"

#include "app/commands.hpp"
#include "app/config_file.hpp"
#include "core/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace mylos::app {
namespace {

/// What changes how the numbers of a run are computed, or what becomes of them, but not what they are.
constexpr std::array<std::string_view, 22> may_differ = {"mode",
                                                         "precision",
                                                         "initial-loss-scale",
                                                         "micro-batch",
                                                         "micro-tokens",
                                                         "gradient-accumulation-steps",
                                                         "recompute",
                                                         "attention",
                                                         "gemm",
                                                         "tf32",
                                                         "shard-size",
                                                         "bucket-mib",
                                                         "communicator",
                                                         "communication-precision",
                                                         "keep",
                                                         "on-save-error",
                                                         "stop-before",
                                                         "walltime",
                                                         "checkpoint-every",
                                                         "collective-timeout",
                                                         "eval-on-start",
                                                         "strict"};

}  // namespace

void take_up_run(const std::string& configuration, const std::filesystem::path& checkpoint, Arguments& arguments) {
  const auto saved = nlohmann::ordered_json::parse(configuration, nullptr, false);
  ensure(saved.is_object(), fmt::format("{}: /run/configuration is no JSON object", checkpoint.string()));
  const auto differing = differing_settings(saved, *find_command("train"), arguments, may_differ);
  ensure(
      differing.empty(),
      fmt::format("{} is of a run with other options: {}; give those of the run, or begin anew with another --output "
                  "or --overwrite --resume never",
                  checkpoint.string(), fmt::join(differing, "; ")));
  take_recorded_choices(saved, checkpoint, arguments);
}

}  // namespace mylos::app
