"""Prints the tests that ctest skipped, grouped by reason, the failed tests, and a summary. Exits with 1 if a test failed.

    report_tests.py junit.xml
"""

import re
import sys
import xml.etree.ElementTree


def reason(output):
    """Returns the text that a test passed to GTEST_SKIP(), or the line 'SKIPPED: ...' of a script."""
    match = re.search(r": Skipped\n(.*?)\n", output) or re.search(r"SKIPPED: (.*)", output)
    return match.group(1).strip() if match else "no reason given"


def main(path):
    passed, failed, skipped = 0, [], {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        name, status = case.get("name"), case.get("status")
        if status == "run":
            passed += 1
        elif status == "disabled" or case.find("skipped") is not None:
            why = "disabled" if status == "disabled" else reason(case.findtext("system-out") or "")
            skipped.setdefault(why, []).append(name)
        else:
            failed.append(name)
    for why, names in sorted(skipped.items()):
        print(f"skipped, {why}:")
        for name in names:
            print(f"  {name}")
    for name in failed:
        print(f"failed: {name}")
    print(f"{passed} passed, {len(failed)} failed, {sum(map(len, skipped.values()))} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
