#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

/// The record fetched.json, which `mylos fetch` writes beside the downloaded files: their source and SHA-256.
namespace mylos::data {

/// Writes the record of all files in `directory`. `commit` is the hub's commit, or empty if the source has none.
void write_fetch_record(const std::filesystem::path& directory, const std::string& source, const std::string& commit);

/// Verifies the SHA-256 of the recorded files in `directory`. Returns false if there is no record, which means that the
/// files were copied there. Throws std::runtime_error with both checksums if a file has changed since it was fetched.
bool check_fetch_record(const std::filesystem::path& directory);
/// Does the same for those of `files` that are in the record.
bool check_fetch_record(const std::filesystem::path& directory, std::initializer_list<std::string_view> files);

}  // namespace mylos::data
