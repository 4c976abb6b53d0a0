#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"
#include "app/options/settings.hpp"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Reads and writes run.json, which records the value of every option of a command.
namespace mylos::app {

/// Keys of run.json that are not options: the program that wrote it, and the values it chose for options not given.
inline constexpr const char* program_key = "program";
inline constexpr const char* resolved_key = "resolved";
/// Key in the resolved values: {"train": "0123abcd", ...}, the checksums of data files by option.
inline constexpr const char* checksums_key = "checksums";
/// Key in the resolved values: what NCCL was measured at, in bytes per second.
inline constexpr const char* bandwidth_key = "communicator-bytes-per-second";
/// Key in the program's object: the names of the options that did not have their default.
inline constexpr const char* changed_key = "changed";

/// Returns {"model": ..., "train": ..., ...}: the options of `command` in table order, null for unset ones.
nlohmann::ordered_json settings_json(const Command& command, const Arguments& arguments);

/// Returns the same for runs on any number of ranks: a batch per rank is kept as such.
nlohmann::ordered_json settings_for_any_ranks(const Command& command, const Arguments& arguments);

/// Adds the settings of a saved run.json to `settings`, and applies what else it records. Keys may use any name that
/// the command line accepts, including names of peers; absent and null keys change nothing. Errors: UsageError naming
/// the file and the key; std::runtime_error if the file cannot be read.
void read_config_file(const FileReader& files, const std::filesystem::path& file, const Command& command,
                      Arguments& arguments, std::vector<Setting>& settings);

/// Returns the names of the options of `command` that differ from their default. The list distinguishes options that
/// were set from options whose default changes in another version.
nlohmann::ordered_json changed_options(const Command& command, const Arguments& arguments);

/// Returns "steps 3, now 4" for each option of `command` whose value differs from that in `saved`, a run.json. Ignores
/// --output, the options in `may_differ`, and options that have their default in both, even if versions have different
/// defaults. An option that is absent from a complete run.json had its default: the version that wrote it did not have
/// the option.
std::vector<std::string> differing_settings(const nlohmann::ordered_json& saved, const Command& command,
                                            const Arguments& arguments,
                                            std::span<const std::string_view> may_differ = {});

/// Applies the choices that `saved`, a run.json from `file`, records for options not given: the GEMM providers, the
/// attention kernel and the time in conversations, and, if the settings that they depend on are unchanged, the mode and
/// micro-batch.
void take_recorded_choices(const nlohmann::ordered_json& saved, const std::filesystem::path& file,
                           Arguments& arguments);

}  // namespace mylos::app
