"""Generate clients/suiro/_proto from the .proto files: `python proto/generate.py [--check]`.

The descriptors keep their public names (suiro/v1/…), so reflection shows the contract as it is;
only the import lines of the generated Python point at the private package that the code lives in.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "proto"
TARGET = ROOT / "clients" / "suiro" / "_proto"
INIT = '"""Generated from proto/ by `make gen`; never edited by hand."""\n'


def generate() -> dict[str, str]:
    """The files of the generated package, by name."""
    with tempfile.TemporaryDirectory() as folder:
        names = sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.proto"))
        arguments = ["protoc", f"-I{SOURCES}", f"--python_out={folder}", f"--pyi_out={folder}"]
        if protoc.main([*arguments, *names]) != 0:
            sys.exit("protoc failed")
        files = {path.name: path.read_text() for path in Path(folder).rglob("*_pb2.py*")}
    rewritten = {
        name: text.replace("from suiro.v1 import", "from suiro._proto import")
        for name, text in files.items()
    }
    return {"__init__.py": INIT, **rewritten}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the committed code differs")
    wanted = generate()
    if parser.parse_args().check:
        found = {path.name: path.read_text() for path in TARGET.glob("*.py*") if path.is_file()}
        stale = sorted(n for n in wanted.keys() | found.keys() if wanted.get(n) != found.get(n))
        if stale:
            sys.exit(f"generated code is stale: {', '.join(stale)}; run `make gen`")
        return
    TARGET.mkdir(exist_ok=True)
    for path in TARGET.glob("*.py*"):
        path.unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text)


if __name__ == "__main__":
    main()
