#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

/// The properties of a run in a checkpoint: named numbers and texts, stored as attributes of /run.
namespace mylos::parallel {

class CheckpointRecord {
 public:
  using Value = std::variant<std::uint64_t, double, std::string>;
  using Member = std::pair<std::string, Value>;

  CheckpointRecord() = default;
  /// `source` names the file in error messages.
  explicit CheckpointRecord(std::string source) : source_(std::move(source)) {}

  /// Adds a member, or replaces the one with the same name.
  void set(std::string name, Value value);

  bool has(std::string_view name) const { return find(name) != nullptr; }
  /// Returns the value of a member. Errors: std::runtime_error that names the file and the member, if it is missing or
  /// has another type.
  std::uint64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;

  /// Returns the CRC-32C of all names and values, independent of their order. It is stored in files.
  std::uint32_t checksum() const;

  /// Members in the order in which they were set.
  std::span<const Member> members() const { return members_; }

  /// For value_bytes.hpp, which sends records to other ranks.
  friend auto members(CheckpointRecord& record) { return std::tie(record.source_, record.members_); }

 private:
  const Value* find(std::string_view name) const;
  template <class T>
  const T& get(std::string_view name, std::string_view type) const;

  std::string source_ = "the checkpoint";
  std::vector<Member> members_;
};

}  // namespace mylos::parallel
