#pragma once

#include "app/options/options.hpp"
#include "app/options/recipes.hpp"

#include <nlohmann/json.hpp>

/// Options that only train reads, and their rows.
namespace mylos::app {

inline constexpr std::string_view run_section = "Run", ranks_section = "Ranks";  // of the help

/// Options that only train reads. compare passes them on to the runs that it starts.
struct TrainArguments {
  std::filesystem::path config;  ///< a saved run.json
  std::string recipe;            ///< name in app/options/recipes.cpp; empty: none
  std::string resume = "auto";   ///< "auto", "never" or a path
  bool extend = false;           ///< continue a finished run with a longer schedule
  bool dry_run = false;
  bool profile = false;
  bool verbose = false;               ///< every rank logs, not only the first
  std::optional<double> stop_before;  ///< seconds before the time limit at which the run ends
  std::optional<double> walltime;     ///< time limit in seconds from the start of the program
  std::string communicator = "auto";  ///< "auto", "mpi" or "nccl"
  std::filesystem::path trace;        ///< output file for the first trace events of a run
  std::filesystem::path gpu_log;      ///< output file for GPUs' values, as nvidia-smi writes them
};

inline Option resume_option() {
  Option option = named("resume", "auto|PATH|never", run_section, "train",
                        "auto: continue an unfinished run in the output directory from its latest checkpoint; PATH: "
                        "start from that checkpoint, or from the latest one in that run's directory; never: start at "
                        "step 1; true and false mean auto and never [auto]");
  option.expects =
      "auto (as without it: an unfinished run in --output goes on by itself), never, or a checkpoint or a run's "
      "directory";
  option.choices = {"auto", "never"};
  option.parse = [](Arguments& arguments, std::string_view text) {
    // Trainer's words. Shorter ones that a switch accepts, such as 1 or y, are paths here.
    const bool is_truth = text.size() >= std::string_view("true").size();
    const auto truth = is_truth ? parse_truth(text) : std::nullopt;
    if (!text.empty()) arguments.train->resume = !truth ? text : *truth ? "auto" : "never";
    return !text.empty();
  };
  return option;
}

/// The names are checked when the recipe is applied. A run that resumes has the settings of its own recipe.
inline Option recipe_option() {
  Option option = text_option(
      named("recipe", "NAME", run_section, "train",
            "settings of a program that fine-tunes the same models; options on the command line override them; list: "
            "print the recipes, and exit",
            {.on_resume = OnResume::free}),
      "the name of a recipe, or list", MYLOS_FIELD(train->recipe));
  option.choices = recipe_names();
  return option;
}

/// Returns the options for the course of a run.
inline std::vector<Option> course_options() {
  return {
      unrecorded(path_option(named("config", "FILE", run_section, "train",
                                   "run.json to take settings from; options on the command line override it"),
                             MYLOS_FIELD(train->config))),
      recipe_option(),
      unrecorded(
          switch_option(named("extend", "", run_section, "train",
                              "continue a finished run from its last checkpoint, with larger --steps or --epochs",
                              {.excludes = "overwrite"}),
                        MYLOS_FIELD(train->extend))),
      path_option(
          named(
              "gpu-log", "FILE.csv", run_section, "train",
              "append the GPUs' utilization and memory to FILE.csv every 5 s (more than 16 nodes: less often), in the "
              "columns of nvidia-smi; of several nodes, each writes FILE-NODE.csv",
              {.on_resume = OnResume::free}),
          MYLOS_FIELD(train->gpu_log)),
      unrecorded(switch_option(
          named("profile", "", run_section, "train",
                "print at the end how often and how long the run did what: steps with their parts, evaluations, "
                "checkpoints"),
          MYLOS_FIELD(train->profile))),
      unrecorded(switch_option(
          named("dry-run", "", run_section, "train", "print the settings of the run and the memory it needs, and exit"),
          MYLOS_FIELD(train->dry_run))),
      resume_option(),
  };
}

/// Returns the options for processes and ranks.
inline std::vector<Option> process_options() {
  return {
      choice_option(
          named("communicator", "NAME", ranks_section, "train",
                "library for communication between GPUs: auto, mpi or nccl; auto is nccl if it works on every rank",
                {.on_resume = OnResume::free}),
          {{"auto", {}}, {"mpi", {}}, {"nccl", {}}}, MYLOS_FIELD(train->communicator)),
      unrecorded(switch_option(named("verbose", "", ranks_section, "train",
                                     "print progress, time and memory of each rank, in lines that begin with the rank"),
                               MYLOS_FIELD(train->verbose))),
      unrecorded(path_option(
          named("trace", "FILE", ranks_section, "train",
                "write a Chrome trace of the first steps: computation, waits and communication of each rank"),
          MYLOS_FIELD(train->trace))),
      unrecorded(duration_option(
          named("stop-before", "T", ranks_section, "train",
                "save and exit (code 85) this long before the time limit: seconds, or a duration; default: 5m if "
                "--walltime is given"),
          MYLOS_FIELD(train->stop_before))),
      unrecorded(duration_option(
          with_help(named("walltime", "T", ranks_section, "train sweep",
                          "time limit from the program's start: seconds, or a duration; default: that of Slurm or PBS "
                          "if --stop-before is given"),
                    {{"sweep", "time limit of a job, after which it goes on in another; default: 2:00:00"}}),
          MYLOS_FIELD(train->walltime))),
  };
}

}  // namespace mylos::app
