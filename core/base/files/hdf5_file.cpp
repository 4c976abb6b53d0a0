#include "core/base/files/hdf5_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hdf5.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/setting_error.hpp"

namespace mylos {
namespace {

constexpr std::string_view signature = "\x89HDF\r\n\x1a\n";
constexpr const char* checksum_attribute = "crc32c";
constexpr std::size_t memory_step = std::size_t{16} << 20;  // growth increment of a file in memory, in bytes
constexpr std::size_t end_of_file_position = 28;            // offset in a superblock with 8-byte offsets
constexpr std::size_t longest_text = 4096;                  // maximum bytes of an attribute

void* allocate(std::size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); }

void* copy(void* target, const void* source, std::size_t size, H5FD_file_image_op_t, void*) {
  return std::memcpy(target, source, size);
}

void* resize(void* memory, std::size_t size, H5FD_file_image_op_t, void*) { return std::realloc(memory, size); }

/// Takes the finished file's bytes when HDF5 closes it.
herr_t release(void* memory, H5FD_file_image_op_t operation, void* bytes) {
  const auto* file = static_cast<const char*>(memory);
  if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE && file != nullptr) {
    std::uint64_t end = 0;  // the file's end, from the superblock (version 2 and later): the memory is longer
    std::memcpy(&end, file + end_of_file_position, sizeof end);
    static_cast<std::string*>(bytes)->assign(file, end);
  }
  std::free(memory);
  return 0;
}

void* share(void* bytes) { return bytes; }

herr_t unshare(void*) { return 0; }

/// A path that no file can have. If a file of the given name existed, HDF5 would open it even for a file in memory and
/// pass its bytes to `release`.
constexpr const char* name_of_no_file = "/dev/null/in memory";

/// Creates a file in memory whose content is moved to `bytes` when it is closed. H5Fget_file_image would be simpler,
/// but writes a wrong checksum to superblocks of this format.
hid_t create_file(const std::string& name, std::string& bytes) {
  const Hdf5Id properties(hdf5_access_properties(), H5Pclose);
  H5FD_file_image_callbacks_t callbacks{allocate, copy, resize, release, share, unshare, &bytes};
  H5Pset_fapl_core(properties.get(), memory_step, false);
  H5Pset_file_image_callbacks(properties.get(), &callbacks);
  const auto file = H5Fcreate(name_of_no_file, H5F_ACC_TRUNC, H5P_DEFAULT, properties.get());
  if (file < 0) fail_hdf5(name, "create", "it as HDF5");
  return file;
}

/// Files up to sparse_bytes may consist of holes only; longer ones may be at most most_sparse times as long as their
/// data.
constexpr std::uint64_t sparse_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t most_sparse = 16;

/// Returns the bytes of a file outside holes; `size` if the file system cannot tell.
std::uint64_t data_bytes(int descriptor, std::uint64_t size) {
  std::uint64_t bytes = 0;
  off_t begin = 0, end = 0;
  while ((begin = ::lseek(descriptor, end, SEEK_DATA)) >= 0 && (end = ::lseek(descriptor, begin, SEEK_HOLE)) > begin) {
    bytes += static_cast<std::uint64_t>(end - begin);
  }
  return errno == ENXIO ? bytes : size;  // ENXIO: no more data
}

/// Rejects a file that is long only because of holes: they take no disk space, but memory once read. Copied files may
/// have holes where an array is zero, but most of a feature file is texts and tokens.
void check_holes(const std::filesystem::path& path) {
  const std::uint64_t size = std::filesystem::file_size(path);
  if (size <= sparse_bytes) return;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // HDF5 has just opened it, so it was replaced since
  const std::uint64_t bytes = data_bytes(descriptor, size);
  ::close(descriptor);
  ensure(bytes >= size / most_sparse,
         fmt::format("{} has {} bytes, but only {} bytes of data, and holes: it is damaged, or `mylos prepare` did not "
                     "write it; {}",
                     path.string(), size, bytes, prepare_again(path.string())));
}

bool has_format(const Hdf5Reader& file, std::string_view format) {
  return file.has_attribute("format") && file.text("format") == format;
}

}  // namespace

bool is_hdf5_file(const std::filesystem::path& path) { return beginning_of(path, signature.size()) == signature; }

bool is_prepared_file(const std::filesystem::path& path, std::string_view format) {
  if (!is_hdf5_file(path)) return false;
  try {
    return has_format(Hdf5Reader(path), format);
  } catch (const std::runtime_error&) {  // too damaged to be identified
    return false;
  }
}

std::string prepare_command(std::string_view output) {
  return fmt::format("`mylos prepare {} {} {}`", setting("model", "MODEL"), setting("data", "DATA"),
                     setting("output", output));
}

std::string prepare_again(std::string_view path) {
  return fmt::format("make it again with {} and this run's options", prepare_command(path));
}

Hdf5Writer::Hdf5Writer(std::string name) : name_(std::move(name)), file_(create_file(name_, bytes_), H5Fclose) {}

void Hdf5Writer::set_attribute(const char* attribute, std::int64_t value) {
  write_hdf5_attribute(file_.get(), attribute, value, name_);
}

void Hdf5Writer::set_attribute(const char* attribute, std::string_view value) {
  write_hdf5_attribute(file_.get(), attribute, value, name_);
}

template <class Element>
void Hdf5Writer::write(const char* array, std::span<const Element> values) {
  const hsize_t size = values.size();
  const Hdf5Id space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.get(), 1);
  const auto type = hdf5_type<Element>();
  const Hdf5Id id(H5Dcreate2(file_.get(), array, type, space.get(), links.get(), H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  const bool is_written =
      id.is_valid() && (size == 0 || H5Dwrite(id.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  if (!is_written) fail_hdf5(name_, "write", array);
  const auto checksum = crc32c(std::as_bytes(values));
  write_hdf5_attribute(id.get(), checksum_attribute, checksum, name_);
}

std::string Hdf5Writer::finish() {
  if (!file_.reset()) fail_hdf5(name_, "write", "it to the end");
  return std::move(bytes_);
}

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path) : file_(path) { check_holes(path); }

void Hdf5Reader::check_format(std::string_view format, std::int64_t version, std::optional<std::int64_t> oldest) const {
  ensure(has_format(*this, format), fmt::format("{}: `mylos prepare` did not write it for such a model; {} writes one",
                                                file_.name(), prepare_command()));
  const std::int64_t found = integer("format_version");
  ensure(found >= oldest.value_or(version) && found <= version,
         fmt::format("{} has format version {}, this program reads {}; {}", file_.name(), found, version,
                     prepare_again(file_.name())));
}

bool Hdf5Reader::has_attribute(const char* attribute) const {
  return has_hdf5_attribute(file_.id(), attribute, file_.name());
}

std::int64_t Hdf5Reader::integer(const char* attribute) const {
  return read_hdf5_number<std::int64_t>(file_.id(), attribute, file_.name());
}

std::string Hdf5Reader::text(const char* attribute) const {
  return read_hdf5_text(file_.id(), attribute, file_.name(), longest_text);
}

template <class Element>
std::vector<Element> Hdf5Reader::read(const char* array) {
  const Hdf5Id id(file_.open(array), H5Oclose);
  const auto what = fmt::format("{}: {}", file_.name(), array);
  const auto type = hdf5_type<Element>();
  const Hdf5Id stored(H5Dget_type(id.get()), H5Tclose);
  ensure(stored.is_valid() && H5Tequal(stored.get(), type) > 0, fmt::format("{} has another element type", what));
  const Hdf5Array location = file_.locate(id.get(), sizeof(Element), array);
  ensure(location.shape.size() == 1, fmt::format("{} is not one-dimensional", what));
  std::vector<Element> values(location.size);
  const bool is_read = values.empty() || H5Dread(id.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
  if (!is_read) fail_hdf5(file_.name(), "read", array);
  const auto expected = read_hdf5_number<std::uint32_t>(id.get(), checksum_attribute, what);
  const auto found = crc32c(std::as_bytes(std::span(values)));
  ensure(found == expected, fmt::format("{} has CRC32C {:08x}, not {:08x}: the file is damaged; {}", what, found,
                                        expected, prepare_again(file_.name())));
  return values;
}

template void Hdf5Writer::write(const char*, std::span<const std::uint8_t>);
template void Hdf5Writer::write(const char*, std::span<const std::int32_t>);
template void Hdf5Writer::write(const char*, std::span<const std::uint32_t>);
template void Hdf5Writer::write(const char*, std::span<const std::uint64_t>);
template std::vector<std::uint8_t> Hdf5Reader::read(const char*);
template std::vector<std::int32_t> Hdf5Reader::read(const char*);
template std::vector<std::uint32_t> Hdf5Reader::read(const char*);
template std::vector<std::uint64_t> Hdf5Reader::read(const char*);

}  // namespace mylos
