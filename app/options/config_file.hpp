#pragma once

#include "app/options/arguments.hpp"
#include "app/options/commands.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// run.json: the value of every option of a command, and back.
namespace mylos::app {

/// Keys of run.json that are no options: who wrote it, and what was chosen where nothing was said.
inline constexpr const char* program_key = "program";
inline constexpr const char* resolved_key = "resolved";
/// Key of what is resolved: {"train": "0123abcd", ...}, checksums of the data, by the option that names its file.
inline constexpr const char* checksums_key = "checksums";
/// Key in the object of the program: the names of the options that did not have their default.
inline constexpr const char* changed_key = "changed";

/// {"model": ..., "train": ..., ...}: the options of `command` in the table's order, null where one is unset.
nlohmann::ordered_json settings_json(const Command& command, const Arguments& arguments);

/// Takes the values that a saved run.json has, checked as if they stood on the command line, under any name that the
/// command line takes, those of peers included; keys that are absent or null stay as they are. Errors: UsageError
/// naming the file and the key; std::runtime_error where it cannot be read.
void read_config_file(const std::filesystem::path& file, const Command& command, Arguments& arguments);

/// The options of `command` that have another value than their default, a list of names: what tells an option that was
/// set from one whose default another version changes.
nlohmann::ordered_json changed_options(const Command& command, const Arguments& arguments);

/// "steps 3, now 4" for each option of `command` whose value is not that of `saved`, a run.json; the place of the
/// output is no such option, nor are those in `may_differ`. An option that has its default in both is none either,
/// though versions have different ones. A whole run.json that lacks an option is of a version without it: it went by
/// the default.
std::vector<std::string> differing_settings(const nlohmann::ordered_json& saved, const Command& command,
                                            const Arguments& arguments,
                                            std::span<const std::string_view> may_differ = {});

/// Takes over what `saved`, a run.json from `file`, chose where nothing was said: who computes its matrix products, and
/// its mode and micro-batch, where the settings that these were chosen under are the same.
void take_recorded_choices(const nlohmann::ordered_json& saved, const std::filesystem::path& file,
                           Arguments& arguments);

}  // namespace mylos::app
