#pragma once

#include "core/kernels/gemm_provider.hpp"
#include "core/kernels/recently_used.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>

namespace mylos {

/// Returns oneDNN's data type for an element type.
dnnl::memory::data_type onednn_type(Precision precision);

/// oneDNN's own convolutions. Images are read and written in place; weights are copied to the layout that oneDNN
/// prefers, and their gradients are copied back.
class OneDnnConvolution {
 public:
  OneDnnConvolution(const dnnl::engine& engine, const dnnl::stream& stream) : engine_(engine), stream_(stream) {}

  /// Returns whether oneDNN computes this convolution without its reference implementation and without im2col copies of
  /// whole images.
  bool has(const GemmProduct& product);
  /// Computes the convolution; synchronous.
  void compute(const GemmCall& call);

  /// Returns the bytes of workspace used after it has computed this convolution.
  std::size_t bytes(const GemmProduct& product);
  /// Number of primitives that the cache may still grow by; 0 if it is empty.
  std::size_t growth() const { return primitives_.size() == 0 ? 0 : primitives_.most() - primitives_.size(); }

 private:
  /// The parameters of a primitive.
  struct Key {
    Convolution convolution;
    std::size_t images = 0;
    Precision precision = Precision::float32;
    bool accumulate = false;

    auto operator<=>(const Key&) const = default;
  };
  struct Primitive {
    dnnl::primitive primitive;  ///< null if oneDNN has none
    dnnl::memory::desc x, y, weight;
    dnnl::memory::desc packed;  ///< the weight's layout in the primitive
    dnnl::memory::desc scratch;
    dnnl::reorder reorder;  ///< from the weight to `packed`, or from a packed gradient to the weight's layout; null if
                            ///< equal
  };

  const Primitive& find(const GemmProduct& product);
  Primitive make(const Key& key) const;
  template <class Description>
  void take(Primitive& primitive, const Description& description, const dnnl::memory::desc& packed) const;

  dnnl::engine engine_;
  dnnl::stream stream_;
  /// Large enough for three passes of the two dozen shapes of a residual network, with two numbers of images.
  RecentlyUsed<Key, Primitive> primitives_{160};
  GemmWorkspace scratch_, packed_;
};

}  // namespace mylos
