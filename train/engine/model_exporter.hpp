#pragma once

#include "core/parameters.hpp"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

/// Writes a model into a directory for other programs. Knows the directory's files, but not where the values come from:
/// from the store of a run, or from a checkpoint file.
namespace mylos::train {

/// One of several ranks that write an export side by side: file f is written by writer f % writers.
struct ExportPart {
  std::size_t writer = 0;
  std::size_t writers = 1;
  std::filesystem::path staged = {};  ///< ModelExport::staged() of the first writer; empty for that one
};

/// An export that has been started. The directory is replaced as a whole when the export is complete.
class ModelExport {
 public:
  virtual ~ModelExport() = default;
  /// Takes values of `tensor` from element `first` on: all exported tensors of the table in order, then its state
  /// tensors, each from the first element to the last. If there are several writers, each takes the tensors of its own
  /// files.
  virtual void write(const ParameterTensor& tensor, std::size_t first, std::span<const float> values) = 0;
  /// The directory that collects the files until commit(); empty if only one rank can write.
  virtual std::filesystem::path staged() const { return {}; }
  /// Completes the files of one of several writers after its last value.
  virtual void finish() {}
  /// Completes the export after the last value, and after finish() of all writers. Without this call nothing is
  /// replaced. Only for the first writer.
  virtual void commit() = 0;
};

/// Starts exports of one model.
class ModelExporter {
 public:
  virtual ~ModelExporter() = default;
  /// Returns false for tensors that an export does not take.
  virtual bool exports(const ParameterTensor&) const { return true; }
  /// Returns the number of tensors in each file of an export: consecutive tensors of the table, then state tensors.
  virtual std::vector<std::size_t> files() const = 0;
  /// Starts an export into `directory`, as the only writer or as one of several. There are at most as many writers as
  /// files. The exporter must outlive the export.
  virtual std::unique_ptr<ModelExport> start(const std::filesystem::path& directory, const ExportPart& part) const = 0;
};

}  // namespace mylos::train
