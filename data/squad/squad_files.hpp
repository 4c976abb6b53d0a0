#pragma once

#include <filesystem>
#include <string_view>

/// Locates the official SQuAD files on this machine, without network access.
namespace mylos::data {

struct SquadFiles {
  std::filesystem::path train, dev;
};

/// Returns the files of the data set that the hub calls `name`: "squad" is v1.1 and "squad_v2" is v2.0, each optionally
/// with the prefix "rajpurkar/". Searches the directory of `mylos fetch squad` and the cache of Hugging Face's
/// datasets. Throws std::runtime_error with the locations searched and how to get the files, and std::invalid_argument
/// if there is no such data set.
SquadFiles find_squad_files(std::string_view name);

/// True if `name` is one of these names on the hub.
bool is_squad_name(std::string_view name);

}  // namespace mylos::data
