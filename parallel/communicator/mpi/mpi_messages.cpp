#include "parallel/communicator/mpi/mpi_messages.hpp"

#include "parallel/communicator/communicator.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/mpi/mpi_check.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <limits>
#include <string_view>

namespace mylos::parallel {
namespace {

int count_of(std::size_t bytes) {
  require(bytes <= static_cast<std::size_t>(std::numeric_limits<int>::max()),
          fmt::format("a message of {} bytes", bytes));
  return static_cast<int>(bytes);
}

/// Returns true and clears `requests` if all of them have ended.
bool have_ended(std::vector<MPI_Request>& requests) {
  int all_done = 0;
  MYLOS_CHECK_MPI(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &all_done, MPI_STATUSES_IGNORE));
  if (all_done != 0) requests.clear();
  return all_done != 0;
}

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  const std::string_view name(call);
  fail(fmt::format("{}: {}", name.substr(0, name.find('(')), std::string_view(text, static_cast<std::size_t>(length))));
}

MpiGroup make_mpi_group(MPI_Comm communicator) {
  MYLOS_CHECK_MPI(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN));
  int rank = 0, size = 0;
  MYLOS_CHECK_MPI(MPI_Comm_rank(communicator, &rank));
  MYLOS_CHECK_MPI(MPI_Comm_size(communicator, &size));
  return {communicator, static_cast<std::size_t>(rank), static_cast<std::size_t>(size)};
}

void MpiMessages::send(const MpiGroup& group, std::size_t to, const std::byte* data, std::size_t bytes) {
  if (bytes == 0) return;
  MPI_Request& request = sent_.emplace_back(MPI_REQUEST_NULL);
  MYLOS_CHECK_MPI(MPI_Isend(data, count_of(bytes), MPI_BYTE, group.rank_of(to), group.tag, group.ranks, &request));
  if (is_counted_) count_sent(bytes);
}

void MpiMessages::receive(const MpiGroup& group, std::size_t from, std::byte* data, std::size_t bytes) {
  if (bytes == 0) return;
  MPI_Request& request = received_.emplace_back(MPI_REQUEST_NULL);
  MYLOS_CHECK_MPI(MPI_Irecv(data, count_of(bytes), MPI_BYTE, group.rank_of(from), group.tag, group.ranks, &request));
}

bool MpiMessages::done() {
  // Both calls let messages of either kind progress.
  const bool sent = have_ended(sent_), received = have_ended(received_);
  return sent && received;
}

MpiMessages::~MpiMessages() {
  if (sent_.empty() && received_.empty()) return;
  for (MPI_Request& request : received_) {
    if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  }
  // A receive whose message has begun to arrive is not cancelled. If the other rank has died, it never ends, nor do
  // sends.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  try {
    while (!done() && std::chrono::steady_clock::now() < end) {
    }
  } catch (const std::exception&) {  // the operation that failed reports the error
  }
  for (MPI_Request& request : sent_) {
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }
}

}  // namespace mylos::parallel
