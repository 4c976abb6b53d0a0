#pragma once

#include <filesystem>
#include <string_view>

/// Where the official files of SQuAD lie on this machine, without a network.
namespace mylos::data {

struct SquadFiles {
  std::filesystem::path train, dev;
};

/// Of the data set that the hub calls `name`: "squad" is v1.1, "squad_v2" v2.0, either with "rajpurkar/" before it.
/// Where `mylos fetch squad` put them, or where Hugging Face's datasets keeps what it downloaded. Throws
/// std::runtime_error listing where it looked and how to get them; std::invalid_argument where there is no such data
/// set.
SquadFiles find_squad_files(std::string_view name);

/// Whether the hub's `name` is one of them.
bool is_squad_name(std::string_view name);

}  // namespace mylos::data
