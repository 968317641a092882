"""`python -m bench [suite …]`: measure, print tables, write bench/results/*.json."""

from __future__ import annotations

import argparse
import importlib

from bench.harness import as_row, print_rows, save

SUITES = ("codec", "log", "metadata", "node", "replication", "sdk", "spark", "txn")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=SUITES, help=f"of {', '.join(SUITES)}")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    for suite in arguments.suites:
        print(f"\n== {suite}")
        suite_rows = importlib.import_module(f"bench.{suite}").run(arguments.repeat)
        rows = [as_row(given) for given in suite_rows]
        print_rows(rows)
        save(suite, rows)


if __name__ == "__main__":
    main()
