#include "tasks/interface/pretrained_export.hpp"

namespace mylos::tasks {
namespace {

std::vector<data::TensorShape> tensors_of(const ParameterTable& table) {
  std::vector<data::TensorShape> tensors;
  for (const ParameterRow& row : table.rows()) tensors.push_back({row.name, row.shape});
  return tensors;
}

}  // namespace

PretrainedExport::PretrainedExport(const std::filesystem::path& directory, const OrderedJson& config,
                                   std::span<const data::ModelFile> files, const ParameterTable& table)
    : writer_(directory, config, files, tensors_of(table)) {}

}  // namespace mylos::tasks
