"""Tests scripts/report_tests.py on reports as ctest writes them."""

import pathlib
import sys
import tempfile
import unittest
import xml.sax.saxutils

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import report_tests

SHARD = "Note: This is test shard 1 of 4.\n"


def run(name, state="OK", said=""):
    """Returns what GoogleTest prints about a test; `state` None: it does not end."""
    ended = {"OK": "[       OK ]", "FAILED": "[  FAILED  ]", "SKIPPED": "[  SKIPPED ]"}
    return f"[ RUN      ] {name}\n{said}" + (f"{ended[state]} {name} (1 ms)\n" if state else "")


def case(name, status, output="", skipped=None):
    inner = f'<skipped message="{skipped}"/>' if skipped else ""
    return f'<testcase name="{name}" status="{status}">{inner}<system-out>{xml.sax.saxutils.escape(output)}</system-out></testcase>'


class Report(unittest.TestCase):
    def results(self, *cases):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "junit.xml"
            path.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
            return [(name, state) for name, state, _ in report_tests.results(path)], report_tests.main(path)

    def test_counts_the_tests_within_a_shard(self):
        output = SHARD + run("A.a") + run("B.b/1", "SKIPPED", "x.cpp:1: Skipped\nno data\n")
        self.assertEqual(self.results(case("core.1_of_4", "run", output)), ([("A.a", "OK"), ("B.b/1", "SKIPPED")], 0))

    def test_a_failure_is_that_of_its_test(self):
        output = SHARD + run("A.a") + run("A.b", "FAILED")
        self.assertEqual(self.results(case("core.1_of_4", "fail", output)), ([("A.a", "OK"), ("A.b", "FAILED")], 1))

    def test_a_test_that_does_not_end_has_failed(self):
        output = SHARD + run("A.a") + run("A.b", None, "AddressSanitizer: heap-use-after-free\n")
        self.assertEqual(self.results(case("core.1_of_4", "fail", output)), ([("A.a", "OK"), ("A.b", "FAILED")], 1))

    def test_a_shard_that_fails_beyond_its_tests_has_failed(self):
        for output in (SHARD + run("A.a") + "LeakSanitizer: detected memory leaks\n", SHARD, "error while loading shared libraries"):
            found, code = self.results(case("core.1_of_4", "fail", output))
            self.assertIn(("core.1_of_4", "FAILED"), found)
            self.assertEqual(code, 1)

    def test_a_shard_without_tests_passes_nothing(self):
        self.assertEqual(self.results(case("core.1_of_4", "run", SHARD)), ([], 1))

    def test_other_tests_count_once(self):
        output = run("A.a") + run("A.b")
        self.assertEqual(self.results(case("core.cudnn", "run", output)), ([("core.cudnn", "OK")], 0))

    def test_only_tests_that_say_so_are_skipped(self):
        self.assertEqual(self.results(case("a", "notrun", "SKIPPED: no GPU\n", "SKIP_RETURN_CODE=77")), ([("a", "SKIPPED")], 0))
        self.assertEqual(self.results(case("a", "notrun", "", "Unable to find executable: a")), ([("a", "FAILED")], 1))
        self.assertEqual(self.results(case("a", "disabled")), ([("a", "SKIPPED")], 0))


if __name__ == "__main__":
    unittest.main()
