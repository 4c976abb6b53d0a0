#include "parallel/checkpoint/checkpoint_record.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>

namespace mylos::parallel {

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
  if (typed == nullptr) fail(fmt::format("{}: /run/{} is not a {}", source_, name, type));
  return *typed;
}

std::uint64_t CheckpointRecord::integer(std::string_view name) const {
  return get<std::uint64_t>(name, "whole number");
}

double CheckpointRecord::real(std::string_view name) const { return get<double>(name, "number"); }

const std::string& CheckpointRecord::text(std::string_view name) const { return get<std::string>(name, "text"); }

std::uint32_t CheckpointRecord::checksum() const {
  std::vector<Member> sorted = members_;
  std::ranges::sort(sorted, {}, &Member::first);
  std::string bytes;
  const auto add = [&bytes](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      bytes += value;
    } else {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  };
  for (const auto& [name, value] : sorted) {
    bytes += name;
    bytes += '\0';
    bytes += static_cast<char>('0' + value.index());
    std::visit(add, value);
    bytes += '\0';
  }
  return crc32c(std::as_bytes(std::span(bytes)));
}

}  // namespace mylos::parallel
