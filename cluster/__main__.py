"""`python -m cluster --config node.toml`: run one node until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from suiro.model.error_base import SuiroError

from cluster.config import NodeConfig
from cluster.launch import run_node


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m cluster", description="Run one Suiro node.")
    parser.add_argument("--config", type=Path, required=True, help="the node's TOML file")
    arguments = parser.parse_args()
    try:
        run_node(NodeConfig.from_toml(arguments.config))
    except SuiroError as error:
        sys.exit(f"suiro: {error}")


if __name__ == "__main__":
    main()
