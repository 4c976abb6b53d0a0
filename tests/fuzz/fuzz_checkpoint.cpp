// A valid checkpoint with forged contents: all that its index describes is in the file, and no byte in two datasets.

#include <filesystem>
#include <stdexcept>

#include "core/base/crc32c.hpp"
#include "parallel/checkpoint/checkpoint_file.hpp"
#include "tests/fuzz/hdf5_forgery.hpp"
#include "tests/fuzz/inputs.hpp"
#include "tests/support/hdf5_leaks.hpp"

namespace {

using namespace mylos::parallel;

const mylos::tests::ForgeryNames names = {
    {"/run", "/model", "/model/layer", "/model/layer/weight", "/model/layer/bias", "/state", "/state/mean",
     "/optimizer", "/optimizer/m", "/optimizer/m/weight", "/checksums", "/checksums/model", "/checksums/model/layer",
     "/checksums/model/layer/weight", "/checksums/model/layer/bias", "/checksums/state", "/checksums/state/mean",
     "/checksums/optimizer/m", "/checksums/optimizer/m/weight"},
    {"format", "format_version", "step", "scale", "configuration", "weight", "bias", "mean", "layer"}};

/// Writes a complete checkpoint of four datasets.
void write_checkpoint(const std::filesystem::path& path) {
  const std::vector<DatasetShape> shapes = {{"/model/layer/weight", {5, 3}, 2},
                                            {"/model/layer/bias", {3}, 1},
                                            {"/state/mean", {2}, 1},
                                            {"/optimizer/m/weight", {5, 3}, 1}};
  CheckpointRecord record;
  record.set("step", std::uint64_t{7});
  record.set("scale", 0.5);
  record.set("configuration", std::string("{}"));
  const auto locations = create_checkpoint_file(path, shapes, record);
  const mylos::PositionedFile file(path, mylos::PositionedFile::Use::write);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::vector<float> values(shapes[i].size(), 0.25f);
    file.write(locations[i].values, std::as_bytes(std::span(values)));
    const std::uint64_t count = shapes[i].size() / shapes[i].ranges;
    for (std::size_t range = 0; range < shapes[i].ranges; ++range) {
      const std::uint64_t first = range * count, rest = shapes[i].size() - first;
      const std::uint64_t length = range + 1 == shapes[i].ranges ? rest : count;
      std::byte row[checksum_row_bytes];
      pack_checksum_row({first, length, mylos::crc32c(std::as_bytes(std::span(values).first(length)))}, row);
      file.write(locations[i].checksums + range * checksum_row_bytes, row);
    }
  }
}

void check(const CheckpointIndex& index, std::uint64_t file_bytes) {
  using mylos::tests::expect;
  std::uint64_t bytes = 0;
  for (const CheckpointDataset& dataset : index.datasets) {
    bytes += dataset.size * sizeof(float);
    expect(dataset.size <= file_bytes && dataset.offset + dataset.size * sizeof(float) <= file_bytes,
           "a dataset lies in the file");
    expect(dataset.ranges.size() <= dataset.size, "each range has elements");
  }
  expect(bytes <= file_bytes, "datasets share no bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const mylos::tests::InputDirectory directory;  // HDF5 cannot open a file in memory by its path
  static const std::filesystem::path file = directory.path() / "step-000007.h5";
  static const std::string whole = [] {  // written once, because our writer waits for the disk
    write_checkpoint(file);
    return directory.get(file.filename());
  }();
  directory.put(file.filename(), whole);
  mylos::tests::forge_hdf5(file, names, {bytes, size});
  try {
    check(read_checkpoint_index(file), std::filesystem::file_size(file));
    verify_checkpoint(file);
  } catch (const std::runtime_error&) {  // how bad input is rejected
  }
  return 0;
}
