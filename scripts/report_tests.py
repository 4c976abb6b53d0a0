"""Prints the tests that ctest skipped, grouped by reason, the failed tests, and a summary. Exits with 1 if a test failed or none ran.

    report_tests.py junit.xml
"""

import re
import sys
import xml.etree.ElementTree


def reason(output):
    """Returns the text that a test passed to GTEST_SKIP(), or the line 'SKIPPED: ...' of a script."""
    match = re.search(r": Skipped\n(.*?)\n", output) or re.search(r"SKIPPED: (.*)", output)
    return match.group(1).strip() if match else "no reason given"


def tests_of_shard(output):
    """Yields (name, state, output) of each test in the output of one of several processes that share a program's tests. The state is
    OK, FAILED or SKIPPED. A test that did not end is FAILED."""
    for text in re.split(r"^\[ RUN      \] ", output, flags=re.MULTILINE)[1:]:
        name = text.split("\n", 1)[0]
        state = re.search(r"^\[ +(OK|FAILED|SKIPPED) +\] " + re.escape(name), text, re.MULTILINE)
        yield name, state[1] if state else "FAILED", text


def results(path):
    """Yields (name, state, output) of all tests in a report of ctest."""
    states = {"run": "OK", "fail": "FAILED"}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, status, output = case.get("name"), case.get("status"), case.findtext("system-out") or ""
        if status == "disabled":
            yield name, "SKIPPED", ": Skipped\ndisabled\n"
            continue
        skipped = case.find("skipped")  # also written for a program that is not there
        was_skipped = skipped is not None and skipped.get("message", "").startswith("SKIP_")
        state = "SKIPPED" if was_skipped else states.get(status, "FAILED")
        if "Note: This is test shard " not in output:
            yield name, state, output
            continue
        tests = list(tests_of_shard(output))
        yield from tests
        if state == "FAILED" and not any(of_test == "FAILED" for _, of_test, _ in tests):
            yield name, state, output


def main(path):
    passed, failed, skipped = 0, [], {}
    for name, state, output in results(path):
        if state == "OK":
            passed += 1
        elif state == "SKIPPED":
            skipped.setdefault(reason(output), []).append(name)
        else:
            failed.append(name)
    for why, names in sorted(skipped.items()):
        print(f"skipped, {why}:")
        for name in names:
            print(f"  {name}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed, {sum(map(len, skipped.values()))} skipped")
    return 1 if failed or not (passed or skipped) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
