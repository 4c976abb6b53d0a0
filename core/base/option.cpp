#include "core/base/option.hpp"

#include "core/base/usage_error.hpp"

#include <fmt/format.h>

namespace mylos {

void OptionSources::exclude(std::string_view one, std::string_view other) const {
  const bool one_given = was_given(one), other_given = was_given(other);
  if (one_given && other_given) {
    throw UsageError(fmt::format("--{} and --{} exclude each other; give one of them", one, other));
  }
  if (one_given || other_given) return;
  if (was_configured(one) && was_configured(other)) {
    throw UsageError(
        fmt::format("{} and {} exclude each other; leave one of them out of the configuration", one, other));
  }
}

}  // namespace mylos
