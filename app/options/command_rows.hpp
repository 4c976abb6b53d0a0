#pragma once

#include "data/huggingface/fetch.hpp"

#include <cstddef>
#include <limits>

/// The rows of the table of commands: ROW(NAME, columns of Command). The table of app/options/commands.hpp is made from
/// them, and the program's functions: run_NAME(arguments) is in app/NAME.cpp. A macro, because a table of functions
/// would link the whole program wherever options are parsed.
#define MYLOS_COMMANDS(ROW)                                                                                            \
  ROW(train, {.arguments = "--model M --train FILE [--dev FILE] --output DIR [options]",                               \
              .summary = "fine-tunes a model",                                                                         \
              .needs = "model train output",                                                                           \
              .runs_on_ranks = true})                                                                                  \
  ROW(eval, {.arguments = "--model M --data FILE --output DIR [options]",                                              \
             .summary = "predicts the samples of a file and scores the predictions",                                   \
             .needs = "model data output",                                                                             \
             .takes_settings_of_run = true})                                                                           \
  ROW(ask, {.arguments = "--model M --context FILE [options] [QUESTION...]",                                           \
            .summary = "answers questions about a text; reads them from standard input, one per line, if none is "     \
                       "given",                                                                                        \
            .most_positional = any_number,                                                                             \
            .task = "question-answering",                                                                              \
            .needs = "model context",                                                                                  \
            .takes_settings_of_run = true})                                                                            \
  ROW(generate, {.arguments = "--model M [options] [PROMPT...]",                                                       \
                 .summary = "continues prompts with a language model; reads them from standard input, one per line, "  \
                            "if none is given",                                                                        \
                 .most_positional = any_number,                                                                        \
                 .task = "language-modeling",                                                                          \
                 .needs = "model",                                                                                     \
                 .takes_settings_of_run = true})                                                                       \
  ROW(classify, {.arguments = "--model M [options] IMAGE...",                                                          \
                 .summary = "prints the five likeliest labels of each image, with their probabilities",                \
                 .least_positional = 1,                                                                                \
                 .most_positional = any_number,                                                                        \
                 .task = "image-classification",                                                                       \
                 .needs = "model",                                                                                     \
                 .takes_settings_of_run = true})                                                                       \
  ROW(score, {.arguments = "DATA PREDICTIONS [options]",                                                               \
              .summary = "scores predictions as the data set's official script does",                                  \
              .least_positional = 2,                                                                                   \
              .most_positional = 2,                                                                                    \
              .task = "question-answering"})                                                                           \
  ROW(tokenize, {.arguments = "--model M | --vocab FILE [options]",                                                    \
                 .summary = "reads lines and prints the token ids of each as a JSON array, or converts ids to text"})  \
  ROW(prepare, {.arguments = "--model M --data FILE --output FILE [options]",                                          \
                .summary = "tokenises a data set once: .h5 for train and eval, .jsonl for people",                     \
                .needs = "model data output"})                                                                         \
  ROW(merge, {.arguments = "--model M --adapter DIR --output DIR [options]",                                           \
              .summary = "writes a model with an adapter in its weights, in the type of the model's",                  \
              .needs = "model output"})                                                                                \
  ROW(fetch, {.arguments = "NAME", .summary = data::fetch_summary(), .least_positional = 1, .most_positional = 1})     \
  ROW(info, {.arguments = "[options]",                                                                                 \
             .summary = "prints the settings of this build and the hardware that it runs on",                          \
             .runs_on_ranks = true})                                                                                   \
  ROW(bench, {.arguments = "gemm|step|batch|tokenize|collectives [options]",                                           \
              .summary = "validates, then times matrix products, training steps, micro-batches, the tokenizer or "     \
                         "collectives",                                                                                \
              .least_positional = 1,                                                                                   \
              .most_positional = 1,                                                                                    \
              .runs_on_ranks = true})                                                                                  \
  ROW(checkpoint,                                                                                                      \
      {.arguments = "list|show|verify|export|diff PATH [PATH] [options]",                                              \
       .summary = "inspects or exports checkpoints; PATH is a checkpoint or a run's directory; diff exits "            \
                  "with 1 if two differ",                                                                              \
       .least_positional = 2,                                                                                          \
       .most_positional = 3})                                                                                          \
  ROW(compare, {.arguments = "--model M --train FILE [--dev FILE] --output DIR [options]",                             \
                .summary = "repeats a training run with several sharding strategies and numbers of ranks, and prints " \
                           "a table",                                                                                  \
                .options_of = "train",                                                                                 \
                .needs = "model train output"})                                                                        \
  ROW(sweep, {.arguments = "SETTINGS.json --output DIR [options] | DIR [--json]",                                      \
              .summary = "writes a job array that trains each point of a grid of options; with DIR, prints its table", \
              .least_positional = 1,                                                                                   \
              .most_positional = 1})                                                                                   \
  ROW(plan, {.arguments = "--model M --gpu KIND [--gpus N] [--nodes M] [options]",                                     \
             .summary = "predicts memory, time and scaling of each sharding strategy, and prints the command to run"}) \
  ROW(watch, {.arguments = "RUN [options]",                                                                            \
              .summary = "shows a live run until it ends, on any machine that sees its files",                         \
              .least_positional = 1,                                                                                   \
              .most_positional = 1})                                                                                   \
  ROW(doctor, {.arguments = "[--output DIR] [--model M] [options]",                                                    \
               .summary = "checks this machine, or all ranks of a job, for what would make a run fail; exits with 1 "  \
                          "if it finds errors",                                                                        \
               .runs_on_ranks = true})                                                                                 \
  ROW(report, {.arguments = "[RUN...] [options]",                                                                      \
               .summary = "writes a self-contained HTML page about runs",                                              \
               .most_positional = any_number})

namespace mylos::app {

/// The largest number of positional arguments of a command that takes any number.
inline constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

}  // namespace mylos::app
