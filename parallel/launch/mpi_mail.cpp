#include "parallel/launch/mpi_mail.hpp"

#include "parallel/communicator/mpi_check.hpp"

#include <iterator>
#include <utility>

namespace mylos::parallel {
bool MpiMail::is_done(Letter& letter) {
  int done = 0;
  MYLOS_CHECK_MPI(MPI_Test(&letter.request, &done, MPI_STATUS_IGNORE));
  return done != 0;
}

void MpiMail::send(std::size_t to, std::vector<std::byte> message) {
  sent_.remove_if(is_done);
  Letter& letter = sent_.emplace_back(Letter{.from = ranks_.rank, .message = std::move(message)});
  MYLOS_CHECK_MPI(MPI_Isend(letter.message.data(), static_cast<int>(letter.message.size()), MPI_BYTE,
                            ranks_.rank_of(to), ranks_.tag, ranks_.ranks, &letter.request));
}

bool MpiMail::is_all_sent() {
  sent_.remove_if(is_done);
  return sent_.empty();
}

void MpiMail::receive(const std::function<void(std::size_t from, std::span<const std::byte> message)>& take) {
  for (;;) {
    int there = 0, bytes = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    MYLOS_CHECK_MPI(MPI_Improbe(MPI_ANY_SOURCE, ranks_.tag, ranks_.ranks, &there, &message, &status));
    if (there == 0) break;
    MYLOS_CHECK_MPI(MPI_Get_count(&status, MPI_BYTE, &bytes));
    // Do not block: the rest of a long message never arrives if its sender has been stopped.
    Letter& letter = arriving_.emplace_back(Letter{.from = static_cast<std::size_t>(status.MPI_SOURCE),
                                                   .message = std::vector<std::byte>(static_cast<std::size_t>(bytes))});
    MYLOS_CHECK_MPI(MPI_Imrecv(letter.message.data(), bytes, MPI_BYTE, &message, &letter.request));
  }
  for (auto letter = arriving_.begin(); letter != arriving_.end();) {
    const auto next = std::next(letter);
    if (is_done(*letter)) {
      std::list<Letter> arrived;
      arrived.splice(arrived.end(), arriving_, letter);
      take(letter->from, letter->message);
    }
    letter = next;
  }
}

}  // namespace mylos::parallel
