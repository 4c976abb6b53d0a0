#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"
#include "families/llama/llama_config.hpp"
#include "families/llama/llama_model.hpp"
#include "parallel/communicator/agreement.hpp"
#include "tasks/language_modeling/language_config.hpp"
#include "tasks/language_modeling/language_modeling_kind.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tasks/question_answering/question_answering_kind.hpp"
#include "tasks/question_answering/squad_config.hpp"
#include "tasks/question_answering/squad_task.hpp"
#include "tests/app/tiny_model.hpp"
#include "tests/support/launch.hpp"
#include "tests/support/read_counter.hpp"
#include "tests/support/temporary.hpp"
#include "tests/support/written_models.hpp"
#include "train/engine/models/initial_parameters.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

/// The parts of a model's weights that a rank reads, and the resulting values, for every family on 1 and 4 ranks, which
/// use the same files.
namespace mylos::tasks {
namespace {

namespace fs = std::filesystem;
using parallel::StrategyKind;

constexpr std::uint64_t seed = 7;

void write_language_model(const fs::path& directory, Precision precision) {
  const std::string config =
      R"({"model_type": "llama", "vocab_size": 1500, "hidden_size": 128, "intermediate_size": 352,
      "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32,
      "rms_norm_eps": 1e-5, "bos_token_id": 1, "eos_token_id": 2})";
  tests::write_file(directory / "train.jsonl", "{\"input_ids\": [5, 6, 7]}\n{\"input_ids\": [7, 8]}\n");
  const families::LlamaShape parsed = families::read_llama_config({parse_json(config, "config"), "config"});
  const auto model = families::make_llama(parsed, Precision::float32);
  std::vector<std::vector<float>> values;
  std::vector<data::NamedTensor> tensors;
  for (const ParameterTensor& row : model->table().tensors()) {
    values.emplace_back(row.size);
    initialize(row, 11, values.back());
  }
  for (std::size_t row = 0; row < values.size(); ++row) {
    tensors.push_back({model->table().tensor(row).name, model->table().tensor(row).shape, values[row]});
  }
  data::write_pretrained(directory / "model", families::llama_config_json(parsed), {}, tensors,
                         {.precision = precision});
}

std::unique_ptr<Task> language_task(const fs::path& directory, std::size_t rank) {
  RunConfig run;
  run.task.adapters.rank = rank;
  run.task.model = directory / "model";
  run.task.train = directory / "train.jsonl";
  run.task.batch = 1;
  run.settings = LanguageConfig{.max_length = 16};
  return make_with_data(language_modeling(), run, [](const std::string&) {});
}

void write_squad_model(const fs::path& directory, Precision) {
  tests::write_tiny_model(directory / "model",
                          {.has_head = false, .hidden = 128, .layers = 3, .feed_forward = 512, .heads = 4});
  tests::write_file(directory / "train.json", tests::tiny_questions());
}

std::unique_ptr<Task> squad_task(const fs::path& directory, std::size_t rank) {
  RunConfig run;
  run.task.adapters.rank = rank;
  run.task.model = directory / "model";
  run.task.train = directory / "train.json";
  run.task.batch = 1;
  run.settings = SquadConfig{.max_length = 60, .doc_stride = 20};
  return make_with_data(question_answering(), run, [](const std::string&) {});
}

/// A family of models, with the weights of one written as `precision`.
struct Family {
  const char* name;
  void (*write)(const fs::path& directory, Precision precision);
  std::unique_ptr<Task> (*make)(const fs::path& directory, std::size_t rank);
  Precision precision;
  const char* drawn;     ///< prefix of the tensors that the file lacks; empty if it has all
  std::size_t rank = 0;  ///< of adapters, which are drawn
};

class InitialWeights : public testing::TestWithParam<Family> {
 protected:
  static constexpr StrategyKind kinds[] = {StrategyKind::replicated, StrategyKind::sharded_optimizer,
                                           StrategyKind::sharded_gradients, StrategyKind::sharded,
                                           StrategyKind::hybrid};

  static parallel::Communicator& world() { return tests::launch().world(); }
  static bool is_drawn(const ParameterTensor& tensor) {
    const std::string prefix = GetParam().drawn;
    return tensor.adapter || (!prefix.empty() && tensor.name.starts_with(prefix));
  }

  std::unique_ptr<Task> make() const { return GetParam().make(directory_, GetParam().rank); }
  void SetUp() override {
    if (world().rank() == 0) GetParam().write(directory_, GetParam().precision);
    world().barrier("a written model");
    task_ = make();
  }
  void TearDown() override {
    task_.reset();
    world().barrier("the end of a test");  // before the first rank removes the directory
  }

  template <class Check>
  void for_each_strategy(const Check& check) {
    for (const StrategyKind kind : kinds) {
      const std::size_t ranks = world().size();
      if (kind == StrategyKind::hybrid && ranks % 2 != 0) continue;
      SCOPED_TRACE(std::string(to_string(kind)));
      parallel::Mesh mesh(world(), ranks_that_split(kind, 2, ranks));
      ParameterStore store(task_->model().table(), Precision::float32, ParameterStore::Purpose::training,
                           store_layout(kind, mesh.shard().size()));
      const auto strategy = make_sharding_strategy({.kind = kind}, mesh, store);
      check(store, *strategy);
    }
  }

  tests::TemporaryDirectory own_;
  fs::path directory_ = parallel::broadcast(world(), own_.path().string());  ///< the first rank's
  fs::path weights_ = directory_ / "model/model.safetensors";
  std::unique_ptr<Task> task_;
};

TEST_P(InitialWeights, AreThoseOfTheFileBitForBit) {
  const data::SafetensorsFile file(FileReader(), weights_);
  for_each_strategy([&](ParameterStore& store, parallel::ShardingStrategy& strategy) {
    train::pass_on(train::fill_parameters(FileReader(), *task_, seed, store, strategy), store, strategy);
    for (std::size_t row = 0; row < store.table().tensors().size(); ++row) {
      const ParameterTensor& description = store.table().tensor(row);
      std::vector<float> expected(description.size), values(description.size);
      if (is_drawn(description)) {
        initialize(description, seed, expected);
      } else {
        expected = file.read_float(description.name);
      }
      strategy.read_tensor(row, 0, values);
      EXPECT_EQ(std::memcmp(values.data(), expected.data(), values.size() * sizeof(float)), 0) << description.name;
    }
  });
}

TEST_P(InitialWeights, RanksReadTheBytesThatTheyOwnAndEachByteOnce) {
  if (!tests::bytes_read()) GTEST_SKIP() << "the system does not count what is read";
  const std::uint64_t file = fs::file_size(weights_);
  for_each_strategy([&](ParameterStore& store, parallel::ShardingStrategy& strategy) {
    std::uint64_t owned = 0, all = 0;
    for (std::size_t row = 0; row < store.table().tensors().size(); ++row) {
      if (is_drawn(store.table().tensor(row))) continue;
      owned += strategy.owned_range(row).size() * bytes_of(GetParam().precision);
      all += store.table().tensor(row).size * bytes_of(GetParam().precision);
    }
    const std::uint64_t before = *tests::bytes_read();
    const auto filled = train::fill_parameters(FileReader(), *task_, seed, store, strategy);
    const std::uint64_t taken = *tests::bytes_read() - before, elsewhere = file - all + tests::uncounted_reads;
    EXPECT_LE(taken, owned + elsewhere) << "of " << all << " bytes";
    const auto together = static_cast<std::uint64_t>(parallel::sum(world(), static_cast<double>(taken)));
    EXPECT_GE(together, all);
    EXPECT_LE(together, all + world().size() * elsewhere);
    train::pass_on(filled, store, strategy);
  });
}

/// BERT's header is longer than what is not counted.
TEST_P(InitialWeights, RanksReadNoHeaderThatTheFirstRankHasRead) {
  if (!tests::bytes_read()) GTEST_SKIP() << "the system does not count what is read";
  for_each_strategy([&](ParameterStore& store, parallel::ShardingStrategy& strategy) {
    const FileCopies headers = train::copy_weight_headers(world(), *task_);
    const std::uint64_t before = *tests::bytes_read();
    const auto filled = train::fill_parameters(FileReader(headers), *task_, seed, store, strategy);
    const std::uint64_t taken = *tests::bytes_read() - before;
    std::uint64_t own = 0;  // bytes of values in the file
    for (const train::FilledPiece& piece : filled.pieces) {
      if (piece.by != strategy.copies().rank() || is_drawn(store.table().tensor(piece.tensor))) continue;
      own += piece.count * bytes_of(GetParam().precision);
    }
    train::pass_on(filled, store, strategy);
    EXPECT_GE(taken, own);
    const std::uint64_t header = world().size() > 1 ? 0 : fs::file_size(weights_) - own;
    EXPECT_LE(taken, own + header + tests::uncounted_reads);
  });
}

/// Returns the checksum of the frozen values beside adapters, as one process reads all of them.
std::uint64_t checksum_in_one_process(const Task& task, std::uint64_t seed_of_drawn) {
  ParameterStore store(task.model().table(), Precision::bfloat16, ParameterStore::Purpose::training);
  const auto strategy = parallel::make_single_process_strategy(store);
  return train::fill_parameters(FileReader(), task, seed_of_drawn, store, *strategy).adapted_checksum;
}

TEST_P(InitialWeights, ChecksumsOfAdaptedModelsDependOnTheirValuesAlone) {
  const std::uint64_t whole = checksum_in_one_process(*task_, seed);
  EXPECT_EQ(whole != 0, GetParam().rank > 0);
  EXPECT_EQ(checksum_in_one_process(*task_, seed + 1), whole) << "adapters do not count";
  for_each_strategy([&](ParameterStore& store, parallel::ShardingStrategy& strategy) {
    std::uint64_t sum = 0;
    const auto mine = train::fill_parameters(FileReader(), *task_, seed, store, strategy).adapted_checksum;
    for (const std::int64_t part : parallel::gather(world(), std::bit_cast<std::int64_t>(mine))) {
      sum += std::bit_cast<std::uint64_t>(part);
    }
    EXPECT_EQ(sum, whole);
  });
  world().barrier("weights that every rank has read");
  if (world().rank() == 0) {
    std::string bytes = tests::read_file(weights_);
    bytes[bytes.size() - bytes_of(GetParam().precision)] ^= 1;  // the last bit of the last value
    tests::write_file(weights_, bytes);
  }
  world().barrier("a changed file");
  EXPECT_EQ(checksum_in_one_process(*make(), seed) != whole, GetParam().rank > 0);
}

TEST_P(InitialWeights, ThatDifferOnOneNodeEndEveryRank) {
  if (world().size() == 1) GTEST_SKIP() << "one rank has one file";
  GetParam().write(own_ / "own", GetParam().precision);
  const fs::path own = own_ / "own/model/model.safetensors";
  std::string bytes = tests::read_file(own);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (world().rank() + 1 == world().size()) {
    for (std::size_t i = sizeof(header) + header; i < bytes.size(); ++i) bytes[i] ^= 1;
  }
  tests::write_file(own, bytes);
  const auto task = GetParam().make(own_ / "own", GetParam().rank);
  const std::string last = fmt::format("rank {}: the checksum of the model's weights is ", world().size() - 1);
  for_each_strategy([&](ParameterStore& store, parallel::ShardingStrategy& strategy) {
    const auto filled = train::fill_parameters(FileReader(), *task, seed, store, strategy);
    EXPECT_THAT(tests::error_of([&] { train::pass_on(filled, store, strategy); }),
                testing::AllOf(testing::HasSubstr(last), testing::HasSubstr("make them the same on every node")));
  });
}

TEST_P(InitialWeights, AreNotDrawnWhereTheFileLacksALayer) {
  world().barrier("models that every rank has read");
  if (world().rank() == 0) {
    const fs::path path = directory_ / "model/config.json";
    Json config = read_json(path);
    config["num_hidden_layers"] = 4;
    tests::write_file(path, config.dump());
  }
  world().barrier("a model of more layers");
  const auto task = make();
  const train::TensorWriter nothing([](const std::string&, const train::ValueReader&) {});
  EXPECT_THAT(tests::error_of([&] { task->initial_values(FileReader(), nothing); }),
              testing::ContainsRegex("the weights in .* lack [0-9]+ of [0-9]+ tensors: .*[.]3[.]"));
}

INSTANTIATE_TEST_SUITE_P(
    Of, InitialWeights,
    testing::Values(Family{"language_modeling", write_language_model, language_task, Precision::float32, ""},
                    Family{"language_modeling_bfloat16", write_language_model, language_task, Precision::bfloat16, ""},
                    Family{"adapted_bfloat16", write_language_model, language_task, Precision::bfloat16, "", 3},
                    Family{"question_answering", write_squad_model, squad_task, Precision::float32, "qa_outputs."},
                    Family{"adapted_answering", write_squad_model, squad_task, Precision::float32, "qa_outputs.", 2}),
    [](const auto& family) { return std::string(family.param.name); });

}  // namespace
}  // namespace mylos::tasks
