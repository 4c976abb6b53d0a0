#include "app/options/options.hpp"

#include "parallel/sharding/mode_kind.hpp"

#include <nlohmann/json.hpp>

#include <bit>

/// Options for running on several ranks.
namespace mylos::app {
namespace {

constexpr std::string_view ranks = "Ranks";
constexpr std::size_t most_micro_batch_groups = 1024;

Option mode_option() {
  const std::vector<Choice> choices = mode_choices();
  const std::string strategies = "sharding strategy: " + describe(choices);
  Option option = with_help(named("mode", {"strategy"}, "MODE", ranks, "train plan",
                                  strategies + "; default: replicated, or sharded if only that fits",
                                  {.on_resume = OnResume::free, .lays_out = true}),
                            {{"plan", strategies + "; default: all, which plans for each of them"}});
  option.expects = describe(choices);
  option.choices = names_of(choices);
  option.choices.emplace_back("all");  // for plan only
  option.parse = [choices](Arguments& arguments, std::string_view text) {
    arguments.plan.every_mode = text == "all";
    if (arguments.plan.every_mode) return true;
    const auto name = parse_choice(text, choices);
    if (name) arguments.run.engine.parallel.mode = parallel::parse_mode(*name);
    return name.has_value();
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    const auto& mode = arguments.run.engine.parallel.mode;
    return mode ? nlohmann::ordered_json(to_string(*mode)) : nlohmann::ordered_json(nullptr);
  };
  return option;
}

Option communication_precision_option() {
  const std::vector<Choice> choices = {{"float", {"32", "fp32", "float32"}}, {"bfloat16", {"bf16"}}};
  Option option = named("communication-precision", {}, "TYPE", ranks, "train plan",
                        "type in which gradients are sent: float or bfloat16; sums are computed in float",
                        {.on_resume = OnResume::free});
  option.expects = describe(choices);
  option.choices = names_of(choices);
  option.parse = [choices](Arguments& arguments, std::string_view text) {
    const auto name = parse_choice(text, choices);
    if (name) arguments.run.engine.parallel.bfloat16_gradients = *name == "bfloat16";
    return name.has_value();
  };
  option.print = [](const Arguments& arguments) -> nlohmann::ordered_json {
    return arguments.run.engine.parallel.bfloat16_gradients ? "bfloat16" : "float";
  };
  return option;
}

Option communicator_option() {
  Option option = choice_option(
      named("communicator", {}, "NAME", ranks, "train",
            "library for communication between GPUs: auto, mpi or nccl; auto is nccl if it works on every rank",
            {.on_resume = OnResume::free}),
      {{"auto", {}}, {"mpi", {}}, {"nccl", {}}}, [](auto& a) -> auto& { return a.train.communicator; });
  option.expects = "auto, mpi or nccl";
  return option;
}

/// The option is in MiB; the value is stored in bytes.
Option bucket_option() {
  const CountRange range{1, 1024};
  Option option = named("bucket-mib", {}, "N", ranks, "train plan bench",
                        "communication bucket size in MiB; uses twice this memory", {.on_resume = OnResume::free});
  option.expects = describe(range);
  option.parse = [range](Arguments& arguments, std::string_view text) {
    const auto value = parse_count(text, range);
    if (value) arguments.run.engine.parallel.bucket = *value << 20;
    return value.has_value();
  };
  option.print = [](const Arguments& arguments) { return option_json(arguments.run.engine.parallel.bucket >> 20); };
  return option;
}

Option micro_batch_groups_option() {
  Option option = named(
      "leaves", {}, "N", ranks, "train",
      "with --deterministic: number of micro-batch groups per step, a power of two; also the largest number of ranks");
  option.expects = "a power of two from 1 to 1024";
  option.parse = [](Arguments& arguments, std::string_view text) {
    const auto value = parse_count(text, {1, most_micro_batch_groups});
    if (!value || !std::has_single_bit(*value)) return false;
    arguments.run.engine.parallel.micro_batch_groups = *value;
    return true;
  };
  option.print = [](const Arguments& arguments) {
    return option_json(arguments.run.engine.parallel.micro_batch_groups);
  };
  return option;
}

}  // namespace

std::vector<Choice> mode_choices() {
  return {{"replicated", {"ddp"}},
          {"sharded-optimizer", {"zero1", "deepspeed_stage_1"}},
          {"sharded-gradients", {"zero2", "deepspeed", "deepspeed_stage_2"}},
          {"sharded", {"zero3", "fsdp", "deepspeed_stage_3"}},
          {"hybrid", {"hsdp"}}};
}

std::vector<Option> rank_options() {
  return {
      mode_option(),
      meaning_option(with_help(named("no-fsdp", {}, "", ranks, "train plan bench/batch",
                                     "the same as --mode replicated", {.lays_out = true}),
                               {{"compare", "the same as --modes replicated"},
                                {"bench", "with batch: the same as --modes replicated"}}),
                     {"mode", "replicated", "modes"}),
      count_or_unset_option(
          named("shard-size", {}, "N", ranks, "train plan",
                "number of ranks that share one copy of the model in hybrid mode; default: the ranks of a node",
                {.on_resume = OnResume::free, .lays_out = true}),
          {}, [](auto& a) -> auto& { return a.run.engine.parallel.shard_size; }),
      communication_precision_option(),
      communicator_option(),
      bucket_option(),
      switch_option(
          named("deterministic", {}, "", ranks, "train",
                "give the same bits on 1, 2, 4, ... ranks and in every mode, with the same number of threads per rank"),
          [](auto& a) -> auto& { return a.run.engine.parallel.deterministic; }),
      micro_batch_groups_option(),
      duration_option(
          named("collective-timeout", {"ddp-timeout"}, "T", ranks, "train bench doctor",
                "time that a rank waits for another before the program ends on all ranks: seconds, or a duration (90s, "
                "10m)",
                {.on_resume = OnResume::free}),
          [](auto& a) -> auto& { return a.collective_timeout; }),
      unrecorded(switch_option(
          named("verbose", {}, "", ranks, "train",
                "print progress, time and memory of each rank, in lines that begin with the rank"),
          [](auto& a) -> auto& { return a.train.verbose; })),
      unrecorded(path_option(
          named("trace", {}, "FILE", ranks, "train",
                "write a Chrome trace of the first steps: computation, waits and communication of each rank"),
          [](auto& a) -> auto& { return a.train.trace; })),
      unrecorded(duration_option(
          named("stop-before", {}, "T", ranks, "train",
                "save and exit (code 85) this long before the time limit: seconds, or a duration; default: 5m if "
                "--walltime is given"),
          [](auto& a) -> auto& { return a.train.stop_before; })),
      unrecorded(duration_option(
          with_help(named("walltime", {}, "T", ranks, "train sweep",
                          "time limit from the program's start: seconds, or a duration; default: that of Slurm or PBS "
                          "if --stop-before is given"),
                    {{"sweep", "time limit of a job, after which it goes on in another; default: 2:00:00"}}),
          [](auto& a) -> auto& { return a.train.walltime; })),
  };
}

}  // namespace mylos::app
