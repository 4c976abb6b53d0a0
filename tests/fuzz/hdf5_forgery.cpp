#include "tests/fuzz/hdf5_forgery.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/files/hdf5.hpp"
#include "tests/fuzz/inputs.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <stdexcept>

namespace mylos::tests {
namespace {

constexpr int most_changes = 32;                     // per input
constexpr hsize_t most_reserved = hsize_t{4} << 20;  // bytes of a dataset that is allocated at creation
constexpr hsize_t most_chunks = 4096;                // per dimension, all of which an index lists
constexpr const char* checksum_attribute = "crc32c";

/// A forged file has at most this many bytes. HDF5 1.10 reads past its table of free blocks when it looks for 2^62
/// bytes (H5FS_sect_find), so a dataset of any size must not be allocated.
constexpr std::uintmax_t most_file_bytes = std::uintmax_t{2} * most_changes * most_reserved;

/// HDF5 1.10 crashes in its exit handler if a file could not be closed, as happens with some of the forged files.
[[maybe_unused]] const herr_t without_exit_handler = H5dont_atexit();

/// HDF5 reuses freed blocks itself, which hides damage from the address checker until much later.
[[maybe_unused]] const herr_t without_free_lists = H5set_free_list_limits(0, 0, 0, 0, 0, 0);

enum class Layout { late, reserved, compact, chunked, compressed, external, count };

/// Returns an element type, known to readers or not. The caller closes it with H5Tclose.
hid_t chosen_type(Choices& choices) {
  const std::array<hid_t, 8> plain = {H5T_NATIVE_UINT8, H5T_NATIVE_INT32, H5T_NATIVE_UINT32, H5T_NATIVE_UINT64,
                                      H5T_IEEE_F32LE,   H5T_IEEE_F64BE,   H5T_C_S1,          H5T_STD_REF_OBJ};
  const std::size_t kind = choices.below(plain.size() + 3);
  if (kind < plain.size()) return H5Tcopy(plain[kind]);
  if (kind == plain.size()) {
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, H5T_VARIABLE);
    return text;
  }
  if (kind == plain.size() + 1) {
    const hsize_t length = choices.word() % most_reserved;
    return H5Tarray_create2(H5T_NATIVE_UINT8, 1, &length);
  }
  const hid_t row = H5Tcreate(H5T_COMPOUND, 20);  // for a checkpoint's table of checksums
  H5Tinsert(row, "first", 0, H5T_STD_U64LE);
  H5Tinsert(row, "count", 8, H5T_STD_U64LE);
  H5Tinsert(row, "crc32c", 16, H5T_STD_U32LE);
  return row;
}

class Forgery {
 public:
  Forgery(const std::filesystem::path& path, const ForgeryNames& names, Choices choices)
      : path_(path), names_(names), choices_(choices) {}

  void run() {
    const Hdf5Id access(hdf5_access_properties(), H5Pclose);
    const Hdf5Id file(H5Fopen(path_.c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
    file_ = file.get();
    for (int i = 0; i < most_changes && !choices_.is_empty(); ++i) {
      try {
        change();
      } catch (const std::runtime_error&) {  // HDF5 rejected this change
      }
    }
  }

  /// Flips the chosen bits of the closed file.
  void flip() const {
    std::fstream stream(path_, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = std::filesystem::file_size(path_);
    for (const auto& [location, mask] : flips_) {
      const auto offset = static_cast<std::streamoff>(location % size);
      stream.seekg(offset);
      const char byte = static_cast<char>(stream.get() ^ mask);
      stream.seekp(offset);
      stream.put(byte);
    }
  }

 private:
  void change() {
    switch (choices_.below(9)) {
      case 0:
        return make_dataset();
      case 1:
        return change_values();
      case 2:
        return remove(path());
      case 3:
        return link();
      case 4:
        return link_to_path();
      case 5:
        return link_to_file();
      case 6:
        return change_attribute();
      case 7:
        return make_group();
      default:
        flips_.push_back({choices_.word(), choices_.byte()});
    }
  }

  const std::string& path() { return names_.paths[choices_.below(names_.paths.size())]; }

  void remove(const std::string& name) {
    if (H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0) H5Ldelete(file_, name.c_str(), H5P_DEFAULT);
  }

  void make_dataset() {
    const std::string& name = path();
    const Hdf5Id type(chosen_type(choices_), H5Tclose);
    const auto layout = static_cast<Layout>(choices_.below(static_cast<std::size_t>(Layout::count)));
    std::array<hsize_t, 10> extents{};
    const auto rank = choices_.below(extents.size());
    constexpr hsize_t too_many = most_reserved + 1;  // the product of ten extents may not fit in 64 bits
    hsize_t elements = 1;
    for (std::size_t i = 0; i < rank; ++i) {
      extents[i] = choices_.word();
      if (layout == Layout::chunked || layout == Layout::compressed) extents[i] %= most_chunks;
      elements = std::min(elements * std::min(extents[i], too_many), too_many);
    }
    const Hdf5Id properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    choose_layout(properties.get(), layout, rank, elements * H5Tget_size(type.get()) <= most_reserved);
    const Hdf5Id space(H5Screate_simple(static_cast<int>(rank), extents.data(), nullptr), H5Sclose);
    remove(name);
    const Hdf5Id links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links.get(), 1);
    const Hdf5Id dataset(
        H5Dcreate2(file_, name.c_str(), type.get(), space.get(), links.get(), properties.get(), H5P_DEFAULT), H5Dclose);
    if (dataset.is_valid()) write_hdf5_attribute(dataset.get(), checksum_attribute, choices_.word(), "");
  }

  void choose_layout(hid_t properties, Layout layout, std::size_t rank, bool may_reserve) {
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    if (layout == Layout::reserved && may_reserve) H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    if (layout == Layout::compact) H5Pset_layout(properties, H5D_COMPACT);
    if (layout == Layout::external) H5Pset_external(properties, path_.c_str(), 0, H5F_UNLIMITED);
    if (layout != Layout::chunked && layout != Layout::compressed) return;
    std::array<hsize_t, 10> chunk{};
    for (std::size_t i = 0; i < rank; ++i) chunk[i] = 1 + choices_.byte();
    H5Pset_chunk(properties, static_cast<int>(rank), chunk.data());
    if (layout == Layout::compressed) H5Pset_deflate(properties, 9);
  }

  /// Writes chosen bytes into a dataset's values, and corrects its checksum if a byte says so.
  void change_values() {
    const Hdf5Id dataset(H5Dopen2(file_, path().c_str(), H5P_DEFAULT), H5Dclose);
    const Hdf5Id type(dataset.is_valid() ? H5Dget_type(dataset.get()) : -1, H5Tclose);
    const hsize_t size = dataset.is_valid() ? H5Dget_storage_size(dataset.get()) : 0;
    const std::size_t location = choices_.byte(), count = 1 + choices_.below(16);
    const bool is_plain = type.is_valid() && H5Tdetect_class(type.get(), H5T_VLEN) == 0 &&
                          H5Tis_variable_str(type.get()) <= 0 && H5Tget_class(type.get()) != H5T_REFERENCE;
    if (!is_plain || size == 0 || size > most_reserved) return;
    const Hdf5Id space(H5Dget_space(dataset.get()), H5Sclose);
    const auto elements = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get()));
    if (elements * H5Tget_size(type.get()) > size) return;  // compressed
    std::vector<std::byte> values(size);
    if (H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) < 0) return;
    for (std::size_t i = 0; i < count; ++i) values[(location + i) % size] = std::byte{choices_.byte()};
    H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    if (choices_.below(4) == 0 || H5Aexists(dataset.get(), checksum_attribute) <= 0) return;
    H5Adelete(dataset.get(), checksum_attribute);
    write_hdf5_attribute(dataset.get(), checksum_attribute, crc32c(values), "");
  }

  void link() {
    const std::string &from = path(), &to = path(),
                      &member = names_.attributes[choices_.below(names_.attributes.size())];
    H5Lcreate_hard(file_, from.c_str(), file_, (to + '/' + member).c_str(), H5P_DEFAULT, H5P_DEFAULT);
    if (from == to || choices_.below(2) == 0) return;
    remove(to);
    H5Lcreate_hard(file_, from.c_str(), file_, to.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }

  void link_to_path() {
    const std::string &from = path(), &to = path();
    remove(to);
    H5Lcreate_soft(from.c_str(), file_, to.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }

  void link_to_file() {
    const std::string &from = path(), &to = path();
    remove(to);
    H5Lcreate_external(path_.c_str(), from.c_str(), file_, to.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }

  void change_attribute() {
    const std::size_t where = choices_.below(names_.paths.size() + 1);
    const std::string of = where == names_.paths.size() ? "/" : names_.paths[where];
    const std::string& name = names_.attributes[choices_.below(names_.attributes.size())];
    const Hdf5Id object(H5Oopen(file_, of.c_str(), H5P_DEFAULT), H5Oclose);
    if (!object.is_valid()) return;
    if (H5Aexists(object.get(), name.c_str()) > 0) H5Adelete(object.get(), name.c_str());
    switch (choices_.below(5)) {
      case 0:
        return;
      case 1:
        return write_hdf5_attribute(object.get(), name.c_str(), static_cast<std::int64_t>(choices_.word()) - 8, "");
      case 2:
        return write_hdf5_attribute(object.get(), name.c_str(), static_cast<double>(choices_.word()), "");
      case 3:
        return write_hdf5_attribute(object.get(), name.c_str(), std::string(choices_.byte() * 64, 'a'), "");
      default:
        return make_attribute(object.get(), name);
    }
  }

  /// Creates an attribute of any type and shape, without a value.
  void make_attribute(hid_t object, const std::string& name) {
    const Hdf5Id type(chosen_type(choices_), H5Tclose);
    const std::array<hsize_t, 2> extents = {1 + hsize_t{choices_.byte()}, 1 + hsize_t{choices_.byte()}};
    if (H5Tget_size(type.get()) * extents[0] * extents[1] > most_reserved) return;  // HDF5 keeps it in memory
    const Hdf5Id space(H5Screate_simple(static_cast<int>(choices_.below(3)), extents.data(), nullptr), H5Sclose);
    const Hdf5Id made(H5Acreate2(object, name.c_str(), type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  }

  void make_group() {
    const std::string& name = path();
    const Hdf5Id properties(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    if (choices_.below(2) == 0) {
      H5Pset_link_creation_order(properties.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
    }
    remove(name);
    const Hdf5Id group(H5Gcreate2(file_, name.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT), H5Gclose);
  }

  struct Flip {
    std::uint32_t location;
    std::uint8_t mask;
  };

  std::filesystem::path path_;
  const ForgeryNames& names_;
  Choices choices_;
  hid_t file_ = -1;
  std::vector<Flip> flips_;
};

}  // namespace

std::uint8_t Choices::byte() {
  if (bytes_.empty()) return 0;
  const std::uint8_t first = bytes_.front();
  bytes_ = bytes_.subspan(1);
  return first;
}

std::uint32_t Choices::word() {
  std::uint32_t word = 0;
  for (int shift = 0; shift < 32; shift += 8) word |= static_cast<std::uint32_t>(byte()) << shift;
  return word;
}

void forge_hdf5(const std::filesystem::path& file, const ForgeryNames& names, Choices choices) {
  Forgery forgery(file, names, choices);
  forgery.run();
  expect(std::filesystem::file_size(file) <= most_file_bytes, "a forged file is small");
  forgery.flip();
}

}  // namespace mylos::tests
