#include "core/device.hpp"

/// Compiled by scripts/test-cuda, which compares the sizes of these arrays, from the host's pass, with those of the
/// kernel's parameters, from the device's pass. If they differ, kernels read arguments where the host did not write
/// them.
namespace mylos {

struct Arguments {
  ConstVector<float> vector;
  Matrix<float> matrix;
  std::size_t last;
};

char argument_0[sizeof(Vector<float>)];
char argument_1[sizeof(Matrix<float>)];
char argument_2[sizeof(Arguments)];

__global__ void read_arguments(Vector<float> vector, Matrix<float> matrix, Arguments arguments) {
  vector.data()[0] = matrix.data()[arguments.last];
}

}  // namespace mylos
