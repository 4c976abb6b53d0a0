#include "parallel/checkpoint/checkpoint_record.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace mylos::parallel {
namespace {

template <class Number>
void put(std::string& bytes, Number value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& bytes, const std::string& text) {
  put<std::uint64_t>(bytes, text.size());
  bytes += text;
}

/// Inverse of `put`: reads a number from the front of `bytes`.
template <class Number>
Number take(std::string_view& bytes) {
  Number value{};
  require(bytes.size() >= sizeof value, "checkpoint record: packed bytes end early");
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::string take_text(std::string_view& bytes) {
  const auto size = take<std::uint64_t>(bytes);
  require(bytes.size() >= size, "checkpoint record: packed bytes end early");
  std::string text(bytes.substr(0, size));
  bytes.remove_prefix(size);
  return text;
}

enum Kind : std::uint8_t { integer_kind, real_kind, text_kind };  // in the order of Value's alternatives

}  // namespace

void CheckpointRecord::set(std::string name, Value value) {
  const auto found = std::ranges::find(members_, name, &Member::first);
  if (found != members_.end()) {
    found->second = std::move(value);
  } else {
    members_.emplace_back(std::move(name), std::move(value));
  }
}

const CheckpointRecord::Value* CheckpointRecord::find(std::string_view name) const {
  const auto found = std::ranges::find(members_, name, &Member::first);
  return found == members_.end() ? nullptr : &found->second;
}

template <class T>
const T& CheckpointRecord::get(std::string_view name, std::string_view type) const {
  const Value* value = find(name);
  if (value == nullptr) fail(fmt::format("{}: /run has no {}; it cannot be resumed from", source_, name));
  const T* typed = std::get_if<T>(value);
  if (typed == nullptr) fail(fmt::format("{}: /run/{} is no {}", source_, name, type));
  return *typed;
}

std::uint64_t CheckpointRecord::integer(std::string_view name) const {
  return get<std::uint64_t>(name, "whole number");
}

double CheckpointRecord::real(std::string_view name) const { return get<double>(name, "number"); }

const std::string& CheckpointRecord::text(std::string_view name) const { return get<std::string>(name, "text"); }

std::string CheckpointRecord::packed() const {
  std::string bytes;
  put(bytes, source_);
  for (const auto& [name, value] : members_) {
    put(bytes, name);
    put(bytes, static_cast<std::uint8_t>(value.index()));
    std::visit([&](const auto& typed) { put(bytes, typed); }, value);
  }
  return bytes;
}

CheckpointRecord CheckpointRecord::unpacked(std::string_view bytes) {
  CheckpointRecord record(take_text(bytes));
  while (!bytes.empty()) {
    std::string name = take_text(bytes);
    switch (take<std::uint8_t>(bytes)) {
      case integer_kind:
        record.set(std::move(name), take<std::uint64_t>(bytes));
        break;
      case real_kind:
        record.set(std::move(name), take<double>(bytes));
        break;
      default:
        record.set(std::move(name), take_text(bytes));
    }
  }
  return record;
}

}  // namespace mylos::parallel
