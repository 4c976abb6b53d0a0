#include "tasks/interface/text_tokenizer.hpp"

#include "core/base/usage_error.hpp"

namespace mylos::tasks {

std::string TextTokenizer::decode(std::span<const std::int32_t>) const {
  throw UsageError("--decode: the tokenizer of this model does not turn ids into text; leave it out");
}

}  // namespace mylos::tasks
