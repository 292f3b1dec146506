"""datasketch's MinHashLSH (14 bands of 8 rows) over ready signatures (`signatures`, an .npy of uint32 [n, 112]): insert all,
then ask for the neighbours of all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from datasketch import MinHash, MinHashLSH

JOB: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text("utf-8"))


def main() -> None:
    """Insert and query."""
    table = np.load(JOB["signatures"])
    lsh = MinHashLSH(num_perm=112, params=(14, 8))
    sketches = [MinHash(num_perm=112, seed=1, scheme="affine32", hashvalues=row) for row in table]
    for n, sketch in enumerate(sketches):
        lsh.insert(n, sketch)
    pairs = sum(len(lsh.query(sketch)) - 1 for sketch in sketches)
    print(json.dumps({"items": len(table), "bytes": table.nbytes, "pairs": pairs // 2}))


if __name__ == "__main__":
    main()
