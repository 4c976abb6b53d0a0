"""Tests that the checks of check_docs.py can fail: each runs on a small tree that breaks its rule, and on one that follows it."""

import json
import pathlib
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_docs

HELP = """usage: mylos train --model M [options]

fine-tunes.

Model and data:
  --model M                   a directory, or a name
                              (also --model-name-or-path)
  --strict                    refuses
  --resume auto|never         begins

Batches:
  --batch N                   sequences a step [12]
  --a-name-that-is-longer N
                              its text

Not in this version:
                              --keep
"""


class FakeProgram(check_docs.Program):
    def __init__(self):
        self.of_tasks = {"train": "  --text-field NAME  the field\n"}
        self.commands = {"train": HELP, "fetch": "usage: mylos fetch NAME\n"}


class CheckDocs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.write("docs/here.md", "# Some heading, told\n")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def links(self, text):
        self.write("README.md", text)
        return list(check_docs.check_links(self.root))

    def paths(self, text):
        self.write("README.md", text)
        return list(check_docs.check_paths(self.root))

    def test_messages_must_be_in_the_sources(self):
        self.write("train/a.cpp", 'fail("no room: {} MiB "\n     "are \\"free\\"; make room");\n')
        table = "| message | why |\n|---|---|\n| `no room: ... MiB are \"free\"` `make room` | `others` |\n| `%s` | |\n\n| `not in it` |\n"
        self.write("docs/here.md", table % "make room")
        self.assertEqual([], list(check_docs.check_messages(self.root)))
        self.write("docs/here.md", table % "make haste")
        self.assertEqual(["docs/here.md:4: no message says 'make haste'"], list(check_docs.check_messages(self.root)))

    def test_messages_of_the_engine_name_settings(self):
        self.write("train/a.cpp", 'fail(fmt::format("use a smaller {} or {}", setting("micro-batch"), setting("mode", "sharded")));\n')
        for message, breaches in [("use a smaller --micro-batch or --mode sharded", 0), ("use a smaller --batch or", 1), ("use a larger --micro-batch", 1)]:
            with self.subTest(message=message):
                self.write("docs/here.md", f"| message | why |\n|---|---|\n| `{message}` | |\n")
                self.assertEqual(len(list(check_docs.check_messages(self.root))), breaches)

    def options(self, text):
        self.write("README.md", text)
        return list(check_docs.check_options(self.root, FakeProgram()))

    def test_links(self):
        self.assertEqual(self.links("[a](docs/here.md) [b](docs/here.md#some-heading-told) [c](https://example.org/x)"), [])
        self.assertEqual(self.links("\n[a](docs/gone.md)"), ["README.md:2: links to docs/gone.md, which is not there"])
        self.assertEqual(len(self.links("[a](docs/here.md#another)")), 1)

    def test_paths(self):
        self.assertEqual(self.paths("see docs/here.md and docs/, docs/*.md, train/loss, core/gemm_<name>.cpp, ../data/x.json."), [])
        self.assertEqual(self.paths("see `core/gone.hpp`."), ["README.md:1: names core/gone.hpp, which is not there"])
        self.assertEqual(self.paths("run scripts/gone"), ["README.md:1: names scripts/gone, which is not there"])

    def test_size(self):
        def sizes(pages, words, lines):
            with unittest.mock.patch.multiple(check_docs, MOST_PAGES=pages, MOST_WORDS=words, LINES={"docs/here.md": lines}):
                return [breach.split(";")[0] for breach in check_docs.check_size(self.root)]
        self.write("README.md", "two words\n")
        self.write("docs/training-options.md", "a b c d e\n")
        self.write("docs/here.md", "# Here\n\nWith words.\n")
        self.assertEqual(sizes(1, 6, (3, 3)), [])
        self.assertEqual(sizes(0, 5, (4, 5)), ["docs: 1 pages", "docs: 6 words", "docs/here.md: 3 lines"])
        self.assertEqual(sizes(1, 6, (0, 2)), ["docs/here.md: 3 lines"])
        self.write("docs/here.md", "# Here\n\nThis shows.\n")
        self.assertEqual(sizes(1, 6, (3, 3)), ["docs/here.md: does not begin with what a reader can do: With this page you can ..."])

    def questions(self, **row):
        self.write("tests/docs/questions.json", json.dumps([{"question": "Does it?", "page": "docs/here.md"} | row]))
        return list(check_docs.check_questions(self.root))

    def test_questions(self):
        self.write("docs/here.md", "# Page\n\nNo.\n\n## Resuming, too\n\nIt does\nresume.\n\n### Else\n\nIt stops.\n")
        self.assertEqual(self.questions(heading="Resuming, too", answer="It does resume."), [])
        self.assertEqual(self.questions(heading="Resume", answer="It"), ["docs/here.md: has no heading 'Resume', which answers: Does it?"])
        self.assertEqual(len(self.questions(heading="Resuming, too", answer="It stops.")), 1, "below another heading")
        self.assertEqual(len(self.questions(page="docs/gone.md", heading="Page", answer="No.")), 1)

    def test_options_of_commands(self):
        self.assertEqual(self.options("`mylos train --batch 8 --model-name-or-path m`, `--strict`, `mylos --help`, `cmake --preset x`"), [])
        self.assertEqual(self.options("`mylos train --text-field x`, `--text-field`"), [], "of another task")
        self.assertEqual(self.options("build/release/mylos train --modle x"), ["README.md:1: mylos train has no option --modle"])
        self.assertEqual(self.options("    mylos train \\\n      --batsch 2"), ["README.md:1: mylos train has no option --batsch"])
        self.assertEqual(self.options("`mylos fetch --batch`"), ["README.md:1: mylos fetch has no option --batch"])
        self.assertEqual(self.options("`mylos dance`"), ["README.md:1: there is no command mylos dance"])
        self.assertEqual(self.options("`--nothing`"), ["README.md:1: no command has an option --nothing"])

    def test_options_of_scripts(self):
        self.write("scripts/demo", "[ --again ]")
        self.assertEqual(self.options("scripts/demo --again"), [])
        self.assertEqual(self.options("`scripts/demo --twice`"), ["README.md:1: scripts/demo has no option --twice"])

    def test_table(self):
        self.write("docs/training-options.md", f"head\n{check_docs.BEGIN}{check_docs.END}tail\n")
        self.assertEqual(len(list(check_docs.check_table(self.root, FakeProgram()))), 5)
        check_docs.write_table(self.root, FakeProgram())
        self.assertEqual(list(check_docs.check_table(self.root, FakeProgram())), [])
        text = (self.root / "docs/training-options.md").read_text()
        self.assertIn("| `--model M` |  | `--model-name-or-path` | a directory, or a name |", text)
        self.assertIn("| `--resume auto\\|never` |  |  | begins |", text)
        self.assertTrue(text.startswith("head\n") and text.endswith("tail\n"))
        for written, changed in [("`12`", "`13`"), ("a directory, or a name", "a directory")]:
            with self.subTest(written=written):
                self.write("docs/training-options.md", text.replace(written, changed))
                self.assertEqual(len(list(check_docs.check_table(self.root, FakeProgram()))), 1)


if __name__ == "__main__":
    unittest.main()
