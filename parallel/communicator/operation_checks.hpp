#pragma once

#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <string>

/// Argument checks common to all communicators. Errors: std::invalid_argument.
namespace mylos::parallel {

void check_all_reduce(const Buffer& data, const std::string& what);
void check_reduce_scatter(const Buffer& all, const Buffer& mine, std::size_t rank, std::size_t ranks,
                          const std::string& what);
void check_all_gather(const Buffer& mine, const Buffer& all, std::size_t rank, std::size_t ranks,
                      const std::string& what);
void check_broadcast(const Buffer& data, std::size_t root, std::size_t ranks, const std::string& what);
void check_gather(const Buffer& mine, const Buffer& all, std::size_t rank, std::size_t root, std::size_t ranks,
                  const std::string& what);
void check_transfer(const Buffer& data, std::size_t from, std::size_t to, std::size_t ranks, const std::string& what);

/// Returns the size of a buffer's elements in bytes.
std::size_t bytes_of(const Buffer& buffer);
/// Returns true if the buffers share memory.
bool overlap(const Buffer& a, const Buffer& b);

}  // namespace mylos::parallel
