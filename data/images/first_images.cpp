#include "data/images/first_images.hpp"

#include <utility>

#include "core/base/error.hpp"

namespace mylos::data {
namespace {

class FirstImages final : public ImageSet {
 public:
  FirstImages(std::unique_ptr<ImageSet> set, std::size_t count) : set_(std::move(set)) {
    labels_.assign(set_->labels().begin(), set_->labels().begin() + static_cast<std::ptrdiff_t>(count));
    label_names_ = set_->label_names();
    shape_ = set_->shape();
    passed_over_ = set_->passed_over();
  }

  std::string name(std::size_t index) const override { return set_->name(index); }
  std::string location(std::size_t index) const override { return set_->location(index); }
  std::string encoded(std::size_t index) const override { return set_->encoded(index); }
  std::filesystem::path file(std::size_t index) const override { return set_->file(index); }
  std::optional<std::uint32_t> checksum(std::size_t index) const override { return set_->checksum(index); }
  void write_arrays(ByteWriter& bytes) const override { set_->write_arrays(bytes); }
  void read_arrays(ByteReader& bytes) override { set_->read_arrays(bytes); }

 private:
  std::unique_ptr<ImageSet> set_;
};

}  // namespace

std::unique_ptr<ImageSet> first_images(std::unique_ptr<ImageSet> set, std::size_t count) {
  require(count > 0, "first_images: none is asked for");
  if (count >= set->size()) return set;
  return std::make_unique<FirstImages>(std::move(set), count);
}

}  // namespace mylos::data
