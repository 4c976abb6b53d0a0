#pragma once

#include "core/kernels/gemm_provider.hpp"
#include "core/kernels/recently_used.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>

namespace mylos {

/// oneDNN's name of an element type.
dnnl::memory::data_type onednn_type(Precision precision);

/// oneDNN's own convolutions. Images are read and written as they are; weights are copied into the layout that oneDNN
/// likes best, and their gradients back.
class OneDnnConvolution {
 public:
  OneDnnConvolution(const dnnl::engine& engine, const dnnl::stream& stream) : engine_(engine), stream_(stream) {}

  /// Whether oneDNN computes this convolution by anything but a reference, or a copy of whole images' patches.
  bool has(const GemmProduct& product);
  /// Returns when it is computed.
  void compute(const GemmCall& call);

  /// Bytes of workspace when it has computed this convolution.
  std::size_t bytes(const GemmProduct& product);
  /// Primitives that it may still keep, if it keeps any.
  std::size_t growth() const { return primitives_.size() == 0 ? 0 : primitives_.most() - primitives_.size(); }

 private:
  /// All that a primitive is made for.
  struct Key {
    Convolution convolution;
    std::size_t images = 0;
    Precision precision = Precision::float32;
    bool accumulate = false;

    auto operator<=>(const Key&) const = default;
  };
  struct Primitive {
    dnnl::primitive primitive;  ///< null where oneDNN has none
    dnnl::memory::desc x, y, weight;
    dnnl::memory::desc packed;  ///< weight as the primitive has it
    dnnl::memory::desc scratch;
    dnnl::reorder reorder;  ///< of the weight into `packed`, or of a packed gradient to the weight's; null where equal
  };

  const Primitive& find(const GemmProduct& product);
  Primitive make(const Key& key) const;
  template <class Description>
  void take(Primitive& primitive, const Description& description, const dnnl::memory::desc& packed) const;

  dnnl::engine engine_;
  dnnl::stream stream_;
  /// Enough for three passes of the two dozen shapes of a residual network, with two numbers of images.
  RecentlyUsed<Key, Primitive> primitives_{160};
  GemmWorkspace scratch_, packed_;
};

}  // namespace mylos
