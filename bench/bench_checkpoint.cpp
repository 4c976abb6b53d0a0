#include "app/program/build_info.hpp"
#include "core/base/error.hpp"
#include "core/base/stopwatch.hpp"
#include "families/bert/bert_model.hpp"
#include "parallel/checkpoint/checkpoint.hpp"
#include "parallel/launch/launch.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

/// bench_checkpoint DIRECTORY: saves the parameters of BERT-base and the two AdamW moments to DIRECTORY, each rank its
/// part of every unit. Loads them again, compares every value, and prints the times as one line of JSON.
/// lab/checkpoint compares it with other programs.
namespace mylos {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr families::BertShape bert_base = {.vocabulary = 30522,
                                           .hidden = 768,
                                           .layers = 12,
                                           .heads = 12,
                                           .feed_forward = 3072,
                                           .positions = 512,
                                           .token_types = 2};

/// This rank's part of the arrays, whose values are a function of group, unit and element.
class Arrays {
 public:
  Arrays(const ParameterTable& table, std::size_t rank, std::size_t ranks) : table_(table) {
    arrays_.table = &table;
    arrays_.groups = {{"model", {}}, {"optimizer/m", {}}, {"optimizer/v", {}}};
    for (std::size_t unit = 0; unit < table.units().size(); ++unit) {
      const parallel::UnitRange range = part(unit, rank, ranks);
      arrays_.held.push_back({unit, range.begin, range.end});
      for (parallel::CheckpointGroup& group : arrays_.groups) {
        group.parts.emplace_back("mylos::bench::part", range.end - range.begin);
      }
    }
    arrays_.saved_range = [this, ranks](std::size_t unit, std::size_t of) { return part(unit, of, ranks); };
  }

  const parallel::CheckpointArrays& get() const { return arrays_; }

  void fill() {
    visit([](const Vector<float>& values, std::size_t group, std::size_t unit, std::size_t begin) {
      Kokkos::parallel_for(
          "mylos::bench::fill", Kokkos::RangePolicy<ExecutionSpace>(0, values.size()),
          KOKKOS_LAMBDA(std::size_t i) { values(i) = value(group, unit, begin + i); });
    });
  }
  void clear() {
    visit([](const Vector<float>& values, auto...) { Kokkos::deep_copy(values, 0.0f); });
  }
  /// Returns the number of values that differ from those that `fill` writes.
  std::size_t differing() const {
    std::size_t sum = 0;
    visit([&](const Vector<float>& values, std::size_t group, std::size_t unit, std::size_t begin) {
      std::size_t count = 0;
      Kokkos::parallel_reduce(
          "mylos::bench::compare", Kokkos::RangePolicy<ExecutionSpace>(0, values.size()),
          KOKKOS_LAMBDA(std::size_t i, std::size_t & wrong) {
            wrong += values(i) != value(group, unit, begin + i) ? 1 : 0;
          },
          count);
      sum += count;
    });
    return sum;
  }

 private:
  static KOKKOS_FUNCTION float value(std::size_t group, std::size_t unit, std::size_t element) {
    return 1e-3f * static_cast<float>((element * 2654435761u + unit * 40503u + group) % 65521u);
  }

  parallel::UnitRange part(std::size_t unit, std::size_t rank, std::size_t ranks) const {
    const std::size_t size = table_.units()[unit].size;
    return {size * rank / ranks, size * (rank + 1) / ranks};
  }

  template <class Action>
  void visit(const Action& action) const {
    for (std::size_t group = 0; group < arrays_.groups.size(); ++group) {
      for (std::size_t i = 0; i < arrays_.held.size(); ++i) {
        action(arrays_.groups[group].parts[i], group, arrays_.held[i].unit, arrays_.held[i].begin);
      }
    }
  }

  const ParameterTable& table_;
  parallel::CheckpointArrays arrays_;
};

OrderedJson tensors_of(const ParameterTable& table) {
  OrderedJson tensors = OrderedJson::array();
  for (const ParameterTensor& row : table.tensors()) tensors.push_back({row.name, row.shape});
  return tensors;
}

void run(parallel::Communicator& world, const fs::path& directory) {
  const auto model = families::make_bert_question_answering(bert_base, Precision::float32);
  Arrays arrays(model->table(), world.rank(), world.size());
  arrays.fill();
  parallel::prepare_checkpoints(world, directory, parallel::checkpoint_bytes(arrays.get()), 1);
  const parallel::SaveReport saved = parallel::save_checkpoint(world, directory, 1, arrays.get(), {}, 1);
  arrays.clear();
  world.barrier("bench");
  const Stopwatch watch;
  parallel::load_checkpoint(world, saved.file, arrays.get());
  const double loading = watch.seconds();
  parallel::on_every_rank(world, [&] { ensure(arrays.differing() == 0, "other values came back"); });
  if (world.rank() != 0) return;
  const app::BuildInfo build = app::build_info();
  const OrderedJson result = {{"bytes", saved.bytes},
                              {"ranks", world.size()},
                              {"save", saved.seconds},
                              {"load", loading},
                              {"commit", build.commit},
                              {"build_type", build.build_type},
                              {"device", ExecutionSpace::name()},
                              {"tensors", tensors_of(model->table())}};
  std::puts(result.dump().c_str());
}

}  // namespace
}  // namespace mylos

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: bench_checkpoint DIRECTORY\n", stderr), 2;
  try {
    mylos::parallel::Launch launch;
    Kokkos::InitializationSettings settings;
    settings.set_num_threads(static_cast<int>(launch.threads())).set_disable_warnings(true);
    const Kokkos::ScopeGuard kokkos(settings);
    mylos::run(launch.world(), argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_checkpoint: %s\n", error.what());
    return 1;
  }
}
