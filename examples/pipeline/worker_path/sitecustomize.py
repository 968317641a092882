"""For Spark's Python workers: import PySpark as it is installed, not from Spark's zip,
from which every process would compile it anew. The two are the same.
"""

from __future__ import annotations

import sys

sys.path[:] = [entry for entry in sys.path if not entry.endswith("pyspark.zip")]
