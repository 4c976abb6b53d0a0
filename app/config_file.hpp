#pragma once

#include "app/arguments.hpp"
#include "app/commands.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>

/// run.json: the value of every option of a command, and back.
namespace mylos::app {

/// Keys of run.json that are no options: who wrote it, and what was chosen where nothing was said.
inline constexpr const char* program_key = "program";
inline constexpr const char* resolved_key = "resolved";

/// {"model": ..., "train": ..., ...}: the options of `command` in the table's order, null where one is unset.
nlohmann::ordered_json settings_json(const Command& command, const Arguments& arguments);

/// Takes the values that a saved run.json has, checked as if they stood on the command line; keys that are absent or
/// null stay as they are. Errors: UsageError naming the file and the key; std::runtime_error where it cannot be read.
void read_config_file(const std::filesystem::path& file, const Command& command, Arguments& arguments);

}  // namespace mylos::app
