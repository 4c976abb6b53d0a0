#include "train/engine/task.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::train {

void TensorWriter::operator()(const std::string& name, std::span<const float> values) const {
  take_(name, [&](std::size_t first, std::span<float> piece) {
    require(first <= values.size() && piece.size() <= values.size() - first,
            fmt::format("tensor {}: values {} to {} of {}", name, first, first + piece.size(), values.size()));
    std::ranges::copy(values.subspan(first, piece.size()), piece.begin());
  });
}

std::vector<std::size_t> Task::export_files() const {
  const ParameterTable& table = model().table();
  return {table.tensors().size() + table.state_tensors().size()};
}

std::unique_ptr<ModelExport> Task::start_export_part(const std::filesystem::path& directory,
                                                     const ExportPart& part) const {
  require(part.writers == 1, fmt::format("this task has exports of one writer, not of {}", part.writers));
  return start_export(directory);
}

}  // namespace mylos::train
