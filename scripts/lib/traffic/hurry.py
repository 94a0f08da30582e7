"""A program whose waits are shorter: see hurry.c."""

import subprocess
from pathlib import Path


def build_hurry(folder: Path) -> str:
    """Builds the library; where it is."""
    library = folder / "hurry.so"
    source = Path(__file__).with_name("hurry.c")
    subprocess.run(["clang", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return str(library)
