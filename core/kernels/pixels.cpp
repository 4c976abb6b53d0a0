#include "core/kernels/pixels.hpp"

#include "core/base/error.hpp"
#include "core/kernels/team.hpp"
#include "core/work.hpp"

#include <fmt/format.h>

namespace mylos {
namespace {

template <class T>
struct NormalizePixel {
  PixelNormalization normalization;
  ConstVector<std::uint8_t> pixels;
  Matrix<T> y;

  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::size_t row) const {
    const std::size_t channels = normalization.channels;
    for (std::size_t c = 0; c < channels; ++c) {
      const float value = static_cast<float>(pixels.data()[row * channels + c]) / 255.0f;
      y.data()[row * channels + c] = T((value - normalization.mean[c]) / normalization.deviation[c]);
    }
  }
};

}  // namespace

template <class T>
void normalize_pixels(const ExecutionSpace& space, const PixelNormalization& normalization,
                      const ConstVector<std::uint8_t>& pixels, const Matrix<T>& y) {
  require(normalization.channels <= most_pixel_channels && y.extent(1) == normalization.channels &&
              pixels.size() == y.size(),
          fmt::format("pixels: {} bytes of {} channels become {} x {}", pixels.size(), normalization.channels,
                      y.extent(0), y.extent(1)));
  for_each_element(with_work("mylos::pixels::normalize", work_of(y.size(), 3.0, 1.0 + sizeof(T))), space, y.extent(0),
                   NormalizePixel<T>{normalization, pixels, y});
}

#define MYLOS_INSTANTIATE(T)                                                          \
  template void normalize_pixels<T>(const ExecutionSpace&, const PixelNormalization&, \
                                    const ConstVector<std::uint8_t>&, const Matrix<T>&);
MYLOS_INSTANTIATE(float)
MYLOS_INSTANTIATE(bfloat16)
MYLOS_INSTANTIATE(half)
#undef MYLOS_INSTANTIATE

}  // namespace mylos
