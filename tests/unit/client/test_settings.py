"""Settings are typed and bounded; a wrong name is answered with the right one."""

from __future__ import annotations

from typing import Any

import pytest
from suiro.model.batch import Compression
from suiro.model.errors import InvalidSetting
from suiro.model.ids import Address
from suiro.settings import (
    DEFAULT_PORT,
    ConsumerSettings,
    ProducerSettings,
    build_settings,
    parse_bootstrap,
    take_bootstrap,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("suiro://a:1,b:2", (Address("a", 1), Address("b", 2))),
        ("localhost", (Address("localhost", DEFAULT_PORT),)),
        ("suiro://[::1]:7", (Address("::1", 7),)),
        ("a:1,a:1", (Address("a", 1),)),
    ],
)
def test_connection_strings(text: str, expected: tuple[Address, ...]) -> None:
    assert parse_bootstrap(text) == expected


@pytest.mark.parametrize("text", ["a:port", ":", "a:0", "a:70000"])
def test_bad_connection_strings_say_how_it_is_done(text: str) -> None:
    with pytest.raises(InvalidSetting, match="host:port"):
        parse_bootstrap(text)


def test_the_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUIRO", "suiro://there:5")
    assert parse_bootstrap() == (Address("there", 5),)


def test_kafkas_names_and_spellings() -> None:
    settings = build_settings(
        ProducerSettings, {"compression_type": "zstd", "linger.ms": 3, "acks": "-1"}
    )
    assert (settings.compression, settings.linger_ms, settings.acks) == (Compression.ZSTD, 3, "all")
    dotted = {"compression.type": "lz4", "max.in.flight.requests.per.connection": 1}
    settings = build_settings(ProducerSettings, dotted)
    assert (settings.compression, settings.max_in_flight) == (Compression.LZ4, 1)


@pytest.mark.parametrize(
    "given",
    [{"bootstrap_servers": "there:5,here"}, {"bootstrap.servers": ["there:5", "here:9750"]}],
)
def test_where_to_connect_by_kafkas_name(given: dict[str, Any]) -> None:
    assert take_bootstrap(None, given) == (Address("there", 5), Address("here", 9750))
    assert not given
    with pytest.raises(InvalidSetting, match="both say where to connect"):
        take_bootstrap("elsewhere", {"bootstrap_servers": "there"})


def test_idempotence_is_on_where_it_can_be() -> None:
    assert ProducerSettings().is_idempotent
    assert not ProducerSettings(acks=1).is_idempotent
    assert not ProducerSettings(enable_idempotence=False).is_idempotent


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (ProducerSettings, {"linger": 5}, "did you mean 'linger_ms'"),
        (ProducerSettings, {"acks": 3}, "acks is 3; it must be"),
        (ProducerSettings, {"retries": 3}, "until delivery_timeout_ms is over"),
        (ProducerSettings, {"acks": 1, "enable_idempotence": True}, "as acks is not 'all'"),
        (ProducerSettings, {"max_in_flight": 6}, "between 1 and 5"),
        (ProducerSettings, {"partitioner": "random"}, "murmur2, sticky, round_robin"),
        (ProducerSettings, {"compression": "rar"}, "known are none, gzip, snappy, lz4, zstd"),
        (ProducerSettings, {"batch_size": 0}, "batch_size is 0"),
        (ConsumerSettings, {"auto_offset_reset": "first"}, "'earliest', 'latest' or 'none'"),
    ],
)
def test_mistakes_are_explained(kind: type[Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        build_settings(kind, given)
