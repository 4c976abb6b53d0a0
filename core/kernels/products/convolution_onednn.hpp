#pragma once

#include "core/kernels/products/gemm_provider.hpp"
#include "core/kernels/products/recently_used.hpp"

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>

namespace mylos {

/// Returns oneDNN's data type for an element type.
dnnl::memory::data_type onednn_type(Precision precision);

/// Computes convolutions with oneDNN. Images are read and written in place. Weights are copied to the layout that
/// oneDNN prefers, and their gradients are copied back.
class OneDnnConvolution {
 public:
  OneDnnConvolution(const dnnl::engine& engine, const dnnl::stream& stream) : engine_(engine), stream_(stream) {}

  /// Returns whether oneDNN has a fast implementation of this convolution. Its reference implementation does not count,
  /// and neither does one that makes im2col copies of whole images.
  bool has(const GemmProduct& product);
  /// Computes the convolution; synchronous.
  void compute(const GemmCall& call);

  /// Returns the bytes of GEMM workspace that this convolution uses.
  std::size_t bytes(const GemmProduct& product);
  /// Number of primitives that can still be added to the cache; 0 while the cache is empty.
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
    dnnl::primitive primitive;  ///< null if oneDNN has no fast implementation
    dnnl::memory::desc x, y, weight;
    dnnl::memory::desc packed;  ///< the weight's layout in the primitive
    dnnl::memory::desc scratch;
    /// From the weight to `packed`, or from a packed gradient to the weight's layout; null if the layouts are equal.
    dnnl::reorder reorder;
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
