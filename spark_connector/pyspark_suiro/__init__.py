"""The Spark data source `suiro`: Spark finds this package by its name, nothing is registered.

```python
spark.readStream.format("suiro").option("subscribe", "clicks").load()
```
"""

from __future__ import annotations

from pyspark_suiro.lag import Lag, lag
from pyspark_suiro.source import SuiroSource as DefaultSource

__all__ = ["DefaultSource", "Lag", "lag"]
