#include "data/hdf5_file.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "core/crc32c.hpp"
#include "core/error.hpp"
#include "data/files.hpp"

namespace mylos::data {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>, "Hdf5Id keeps identifiers as HDF5 1.10 and later define them");

constexpr const char* checksum_attribute = "crc32c";
constexpr std::size_t memory_step = std::size_t{16} << 20;  // bytes by which a file in memory grows
constexpr std::size_t end_of_file_place = 28;               // in a superblock with 8-byte offsets
constexpr hsize_t longest_text = 4096;                      // bytes of an attribute

template <class Element>
hid_t native_type() {
  if constexpr (std::is_same_v<Element, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<Element, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<Element, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<Element, std::uint64_t>) return H5T_NATIVE_UINT64;
}

/// Keeps the description of the innermost failure, which says why.
herr_t keep_last(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

/// What the HDF5 library says of its last failure.
std::string reason() {
  std::string text = "HDF5 gives no reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_last, &text);
  return printable(text);
}

[[noreturn]] void fail_at(const std::string& file, std::string_view action, std::string_view what) {
  fail(fmt::format("{}: cannot {} {}: {}", file, action, what, reason()));
}

/// Properties of file access: checksummed metadata (format 1.10), and no refusal where file locks are not to be had.
hid_t create_access_properties() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // its stacks of errors are not for users
  const hid_t properties = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(properties, H5F_LIBVER_V110, H5F_LIBVER_V110);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(properties, true, true);
#endif
  return properties;
}

hid_t open_file(const std::filesystem::path& path) {
  const Hdf5Id properties(create_access_properties(), H5Pclose);
  const auto is_hdf5 = H5Fis_hdf5(path.c_str());
  ensure(is_hdf5 != 0, fmt::format("{} is not an HDF5 file", path.string()));
  const auto file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, properties.get());
  if (file < 0) fail_at(path.string(), "open", "it as HDF5");
  return file;
}

void* allocate(std::size_t size, H5FD_file_image_op_t, void*) { return std::malloc(size); }

void* copy(void* target, const void* source, std::size_t size, H5FD_file_image_op_t, void*) {
  return std::memcpy(target, source, size);
}

void* resize(void* memory, std::size_t size, H5FD_file_image_op_t, void*) { return std::realloc(memory, size); }

/// Called with the finished file as it is closed: takes its bytes.
herr_t release(void* memory, H5FD_file_image_op_t operation, void* bytes) {
  const auto* file = static_cast<const char*>(memory);
  if (operation == H5FD_FILE_IMAGE_OP_FILE_CLOSE && file != nullptr) {
    std::uint64_t end = 0;  // the superblock (version 2 and later) says where the file ends; the memory is longer
    std::memcpy(&end, file + end_of_file_place, sizeof end);
    static_cast<std::string*>(bytes)->assign(file, end);
  }
  std::free(memory);
  return 0;
}

void* share(void* bytes) { return bytes; }

herr_t unshare(void*) { return 0; }

/// A file in memory that leaves its content in `bytes` when it is closed. H5Fget_file_image would be simpler, but gives
/// superblocks of this format a wrong checksum.
hid_t create_file(const std::string& name, std::string& bytes) {
  const Hdf5Id properties(create_access_properties(), H5Pclose);
  H5FD_file_image_callbacks_t callbacks{allocate, copy, resize, release, share, unshare, &bytes};
  H5Pset_fapl_core(properties.get(), memory_step, false);
  H5Pset_file_image_callbacks(properties.get(), &callbacks);
  const auto file = H5Fcreate(name.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, properties.get());
  if (file < 0) fail_at(name, "create", "it as HDF5");
  return file;
}

/// Writes one attribute of `object`.
void write_attribute(hid_t object, const char* attribute, hid_t type, const void* value, const std::string& file) {
  const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Id id(H5Acreate2(object, attribute, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!id.is_valid() || H5Awrite(id.get(), type, value) < 0) fail_at(file, "write", attribute);
}

/// Reads one number that is an attribute of `object`.
template <class Value>
Value read_number(hid_t object, const char* attribute, hid_t type, const std::string& file) {
  Value value{};
  const Hdf5Id id(H5Aopen(object, attribute, H5P_DEFAULT), H5Aclose);
  const Hdf5Id space(id.is_valid() ? H5Aget_space(id.get()) : -1, H5Sclose);
  if (!space.is_valid()) fail_at(file, "read", attribute);
  ensure(H5Sget_simple_extent_npoints(space.get()) == 1, fmt::format("{}: {} is not one number", file, attribute));
  if (H5Aread(id.get(), type, &value) < 0) fail_at(file, "read", attribute);
  return value;
}

/// The number of elements of a one-dimensional array of this type that lies in the file as it is.
std::size_t array_size(hid_t array, hid_t type, std::size_t width, const std::string& what) {
  const Hdf5Id stored(H5Dget_type(array), H5Tclose);
  ensure(stored.is_valid() && H5Tequal(stored.get(), type) > 0, fmt::format("{} has another element type", what));
  const Hdf5Id space(H5Dget_space(array), H5Sclose);
  ensure(space.is_valid() && H5Sget_simple_extent_ndims(space.get()) == 1,
         fmt::format("{} is not one-dimensional", what));
  hsize_t size = 0;
  H5Sget_simple_extent_dims(space.get(), &size, nullptr);
  // A forged size is refused before memory is asked for.
  const auto bytes = H5Dget_storage_size(array);
  ensure(bytes / width == size && bytes % width == 0,
         fmt::format("{} claims {} elements, but {} bytes are stored", what, size, bytes));
  return size;
}

}  // namespace

Hdf5Writer::Hdf5Writer(std::string name) : name_(std::move(name)), file_(create_file(name_, bytes_), H5Fclose) {}

void Hdf5Writer::set_attribute(const char* attribute, std::int64_t value) {
  write_attribute(file_.get(), attribute, H5T_NATIVE_INT64, &value, name_);
}

void Hdf5Writer::set_attribute(const char* attribute, std::string_view value) {
  const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  write_attribute(file_.get(), attribute, type.get(), std::string(value).c_str(), name_);
}

template <class Element>
void Hdf5Writer::write(const char* array, std::span<const Element> values) {
  const hsize_t size = values.size();
  const Hdf5Id space(H5Screate_simple(1, &size, nullptr), H5Sclose);
  const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links.get(), 1);
  const auto type = native_type<Element>();
  const Hdf5Id id(H5Dcreate2(file_.get(), array, type, space.get(), links.get(), H5P_DEFAULT, H5P_DEFAULT), H5Dclose);
  const bool is_written =
      id.is_valid() && (size == 0 || H5Dwrite(id.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0);
  if (!is_written) fail_at(name_, "write", array);
  const auto checksum = crc32c(std::as_bytes(values));
  write_attribute(id.get(), checksum_attribute, H5T_NATIVE_UINT32, &checksum, name_);
}

std::string Hdf5Writer::finish() {
  if (!file_.reset()) fail_at(name_, "write", "it to the end");
  return std::move(bytes_);
}

Hdf5Reader::Hdf5Reader(const std::filesystem::path& path) : name_(path.string()), file_(open_file(path), H5Fclose) {}

bool Hdf5Reader::has_attribute(const char* attribute) const { return H5Aexists(file_.get(), attribute) > 0; }

std::int64_t Hdf5Reader::integer(const char* attribute) const {
  return read_number<std::int64_t>(file_.get(), attribute, H5T_NATIVE_INT64, name_);
}

std::string Hdf5Reader::text(const char* attribute) const {
  const Hdf5Id id(H5Aopen(file_.get(), attribute, H5P_DEFAULT), H5Aclose);
  const Hdf5Id type(id.is_valid() ? H5Aget_type(id.get()) : -1, H5Tclose);
  if (!type.is_valid()) fail_at(name_, "read", attribute);
  const bool is_text = H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0 &&
                       H5Tget_size(type.get()) <= longest_text &&
                       H5Aget_storage_size(id.get()) == H5Tget_size(type.get());
  ensure(is_text, fmt::format("{}: {} is not a text", name_, attribute));
  std::string value(H5Tget_size(type.get()), '\0');
  if (H5Aread(id.get(), type.get(), value.data()) < 0) fail_at(name_, "read", attribute);
  value.resize(value.find_last_not_of('\0') + 1);
  return value;
}

template <class Element>
std::vector<Element> Hdf5Reader::read(const char* array) const {
  const Hdf5Id id(H5Dopen2(file_.get(), array, H5P_DEFAULT), H5Dclose);
  if (!id.is_valid()) fail_at(name_, "read", array);
  const auto what = fmt::format("{}: {}", name_, array);
  const auto type = native_type<Element>();
  std::vector<Element> values(array_size(id.get(), type, sizeof(Element), what));
  const bool is_read = values.empty() || H5Dread(id.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0;
  if (!is_read) fail_at(name_, "read", array);
  const auto expected = read_number<std::uint32_t>(id.get(), checksum_attribute, H5T_NATIVE_UINT32, what);
  const auto found = crc32c(std::as_bytes(std::span(values)));
  ensure(found == expected,
         fmt::format("{} has CRC32C {:08x}, not {:08x}: the file is damaged", what, found, expected));
  return values;
}

template void Hdf5Writer::write(const char*, std::span<const std::uint8_t>);
template void Hdf5Writer::write(const char*, std::span<const std::int32_t>);
template void Hdf5Writer::write(const char*, std::span<const std::uint32_t>);
template void Hdf5Writer::write(const char*, std::span<const std::uint64_t>);
template std::vector<std::uint8_t> Hdf5Reader::read(const char*) const;
template std::vector<std::int32_t> Hdf5Reader::read(const char*) const;
template std::vector<std::uint32_t> Hdf5Reader::read(const char*) const;
template std::vector<std::uint64_t> Hdf5Reader::read(const char*) const;

}  // namespace mylos::data
