#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

/// fetched.json, which `mylos fetch` leaves beside the files that it gets: where they came from, and their SHA-256.
namespace mylos::data {

/// Writes the record of all files in `directory`. `commit` is the hub's, empty where the source has none.
void write_fetch_record(const std::filesystem::path& directory, const std::string& source, const std::string& commit);

/// Hashes the recorded files of `directory` again. Returns false where there is no record: somebody copied the files
/// there. Throws std::runtime_error with both sums where a file is no longer what was fetched.
bool check_fetch_record(const std::filesystem::path& directory);
/// The same for those of `files` that the record has.
bool check_fetch_record(const std::filesystem::path& directory, std::initializer_list<std::string_view> files);

}  // namespace mylos::data
