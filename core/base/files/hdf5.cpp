#include "core/base/files/hdf5.hpp"

#include "core/base/error.hpp"

#include <fmt/format.h>
#include <hdf5.h>

#include <cstdlib>
#include <type_traits>

namespace mylos {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>, "Hdf5Id keeps identifiers as HDF5 1.10 and later define them");

/// Turns HDF5's file locks off: files are read only under their final names, and flock fails on some file systems. All
/// versions read this variable once, at their first call, and it overrides the properties of a file. Set before main()
/// because other threads may read the environment later.
[[maybe_unused]] const bool hdf5_locks_are_off = ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1) == 0;

/// Keeps the description of the innermost error, which gives the reason.
herr_t keep_last(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

/// Returns HDF5's description of its last failure, on one line.
std::string reason() {
  std::string text = "HDF5 gives no reason";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_last, &text);
  for (char& character : text) {
    if (static_cast<unsigned char>(character) < 0x20 || character == 0x7f) character = ' ';
  }
  return text;
}

void write_attribute(hid_t object, const char* attribute, hid_t type, const void* value, const std::string& file) {
  const Hdf5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const Hdf5Id id(H5Acreate2(object, attribute, type, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  if (!id.is_valid() || H5Awrite(id.get(), type, value) < 0) fail_hdf5(file, "write", attribute);
}

}  // namespace

template <class Value>
std::int64_t hdf5_type() {
  if constexpr (std::is_same_v<Value, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<Value, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<Value, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<Value, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<Value, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<Value, double>) return H5T_NATIVE_DOUBLE;
}

template std::int64_t hdf5_type<std::uint8_t>();
template std::int64_t hdf5_type<std::int32_t>();
template std::int64_t hdf5_type<std::uint32_t>();
template std::int64_t hdf5_type<std::int64_t>();
template std::int64_t hdf5_type<std::uint64_t>();
template std::int64_t hdf5_type<double>();

void fail_hdf5(const std::string& file, std::string_view action, std::string_view what) {
  fail(fmt::format("{}: cannot {} {}: {}", file, action, what, reason()));
}

std::int64_t hdf5_access_properties() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // no printed error stacks
  H5PLset_loading_state(0);                     // prevents files from loading filter libraries from HDF5_PLUGIN_PATH
  const hid_t properties = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(properties, H5F_LIBVER_V110, H5F_LIBVER_V110);
  return properties;
}

std::int64_t open_hdf5_file(const std::filesystem::path& path) {
  const Hdf5Id properties(hdf5_access_properties(), H5Pclose);
  const auto is_hdf5 = H5Fis_hdf5(path.c_str());
  ensure(is_hdf5 != 0, fmt::format("{} is not an HDF5 file", path.string()));
  const auto file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, properties.get());
  if (file < 0) fail_hdf5(path.string(), "open", "it as HDF5");
  return file;
}

void write_hdf5_attribute(std::int64_t object, const char* attribute, std::uint64_t value, const std::string& file) {
  write_attribute(object, attribute, H5T_NATIVE_UINT64, &value, file);
}

void write_hdf5_attribute(std::int64_t object, const char* attribute, std::uint32_t value, const std::string& file) {
  write_attribute(object, attribute, H5T_NATIVE_UINT32, &value, file);
}

void write_hdf5_attribute(std::int64_t object, const char* attribute, std::int64_t value, const std::string& file) {
  write_attribute(object, attribute, H5T_NATIVE_INT64, &value, file);
}

void write_hdf5_attribute(std::int64_t object, const char* attribute, double value, const std::string& file) {
  write_attribute(object, attribute, H5T_NATIVE_DOUBLE, &value, file);
}

void write_hdf5_attribute(std::int64_t object, const char* attribute, std::string_view value, const std::string& file) {
  const Hdf5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), value.size() + 1);
  write_attribute(object, attribute, type.get(), std::string(value).c_str(), file);
}

bool has_hdf5_attribute(std::int64_t object, const char* attribute, const std::string& file) {
  const auto exists = H5Aexists(object, attribute);
  if (exists < 0) fail_hdf5(file, "look for", attribute);
  return exists > 0;
}

template <class Value>
Value read_hdf5_number(std::int64_t object, const char* attribute, const std::string& file) {
  Value value{};
  const Hdf5Id id(H5Aopen(object, attribute, H5P_DEFAULT), H5Aclose);
  const Hdf5Id space(id.is_valid() ? H5Aget_space(id.get()) : -1, H5Sclose);
  if (!space.is_valid()) fail_hdf5(file, "read", attribute);
  ensure(H5Sget_simple_extent_npoints(space.get()) == 1, fmt::format("{}: {} is not a single number", file, attribute));
  if (H5Aread(id.get(), hdf5_type<Value>(), &value) < 0) fail_hdf5(file, "read", attribute);
  return value;
}

std::string read_hdf5_text(std::int64_t object, const char* attribute, const std::string& file, std::size_t longest) {
  const Hdf5Id id(H5Aopen(object, attribute, H5P_DEFAULT), H5Aclose);
  const Hdf5Id type(id.is_valid() ? H5Aget_type(id.get()) : -1, H5Tclose);
  if (!type.is_valid()) fail_hdf5(file, "read", attribute);
  const bool is_text = H5Tget_class(type.get()) == H5T_STRING && H5Tis_variable_str(type.get()) == 0 &&
                       H5Tget_size(type.get()) <= longest && H5Aget_storage_size(id.get()) == H5Tget_size(type.get());
  ensure(is_text, fmt::format("{}: {} is not a text", file, attribute));
  std::string value(H5Tget_size(type.get()), '\0');
  if (H5Aread(id.get(), type.get(), value.data()) < 0) fail_hdf5(file, "read", attribute);
  value.resize(value.find_last_not_of('\0') + 1);
  return value;
}

template std::int64_t read_hdf5_number(std::int64_t, const char*, const std::string&);
template std::uint64_t read_hdf5_number(std::int64_t, const char*, const std::string&);
template std::uint32_t read_hdf5_number(std::int64_t, const char*, const std::string&);
template double read_hdf5_number(std::int64_t, const char*, const std::string&);

}  // namespace mylos
