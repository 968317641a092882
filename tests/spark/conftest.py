"""One cluster and one Spark session for the tests of a module."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from cluster.local_cluster import Layout, LocalCluster
from examples.pipeline.standalone import worker_environment
from tests.spark.kit import SMALL_SPARK, WHY_NOT_JAVA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), Layout(groups=1, txns=1)) as running:
        yield running


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    if WHY_NOT_JAVA:
        pytest.skip(WHY_NOT_JAVA)
    from pyspark.sql import SparkSession

    os.environ.update(worker_environment())
    session = (
        SparkSession.builder.master("local[2]")
        .config(map=SMALL_SPARK)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()
