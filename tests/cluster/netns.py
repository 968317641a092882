"""A network namespace per node on one bridge, and rules that cut them apart, also one way.

    with Namespaces(["controller-1", "broker-1"]) as network:
        network.host("broker-1")                # its address, reachable from this process too
        network.within("broker-1")              # what to put before a command to run it there
        network.cut("broker-1", "controller-1")
        network.heal()

What is cut is dropped without a word, as a broken switch does. Needs root, `ip` and `nft`;
`reason_against` says what is missing. Leaving the context removes all of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

BRIDGE_FILTER = "/proc/sys/net/bridge/bridge-nf-call-iptables"
TOOLS = {"nsenter": "util-linux", "ip": "iproute2", "nft": "nftables"}


def reason_against() -> str | None:
    """Why namespaces cannot be used here; None if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool, package in TOOLS.items():
        if shutil.which(tool) is None:
            return f"`{tool}` is missing: install Debian's {package}"
    name = f"suiro-try-{os.getpid()}"
    tried = subprocess.run(
        ["ip", "netns", "add", name], check=False, capture_output=True, text=True
    )
    if tried.returncode:
        return f"no network namespace can be made here: {tried.stderr.strip()}"
    _run("ip", "netns", "delete", name)
    return None


class Namespaces:
    """One network; the process that made it is on it as well."""

    def __init__(self, names: Sequence[str]) -> None:
        token = os.getpid() % 32_768
        self._names = list(names)
        self._bridge = f"sb{token}"
        self._token = token
        self._cut: set[str] = set()
        """Who was cut off from somebody."""
        self._passes: tuple[str, ...] = ()
        self._net = f"10.{128 + token // 256}.{token % 256}"

    def host(self, name: str) -> str:
        return f"{self._net}.{self._names.index(name) + 1}"

    def within(self, name: str) -> tuple[str, ...]:
        """Not `ip netns exec`: that makes a namespace for mounts too, which would keep every disk
        mounted for as long as any node lives.
        """
        return ("nsenter", f"--net=/run/netns/{self._namespace(name)}")

    # -- faults -----------------------------------------------------------------------------------

    def cut_one_way(self, source: str, target: str) -> None:
        """Nothing that `source` sends reaches `target`; the other way is as it was."""
        self.cut_all([(source, target)])

    def cut(self, one: str, other: str) -> None:
        self.cut_all([(one, other), (other, one)])

    def cut_all(self, ways: Iterable[tuple[str, str]]) -> None:
        """Many ways from a source to a target at once: one command for each target."""
        sources: dict[str, list[str]] = {}
        for source, target in ways:
            sources.setdefault(target, []).append(self.host(source))
        for target, hosts in sources.items():
            self._drop(target, ", ".join(hosts))

    def cut_clients(self, name: str) -> None:
        """Nothing that comes from outside of the namespaces reaches this node."""
        self._drop(name, f"{self._net}.254")

    def _drop(self, target: str, hosts: str) -> None:
        self._cut.add(target)
        rule = f"add rule inet cut input ip saddr {{ {hosts} }} drop"
        _run(*self.within(target), "nft", rule)

    def throttle(self, name: str, rate: str) -> None:
        """What the node sends leaves at no more than this, such as `1mbit`."""
        limit = ("tbf", "rate", rate, "burst", "32kbit", "latency", "400ms")
        _run(*self.within(name), "tc", "qdisc", "replace", "dev", "eth0", "root", *limit)

    def unthrottle(self, name: str) -> None:
        _run(*self.within(name), "tc", "qdisc", "delete", "dev", "eth0", "root")

    def heal(self) -> None:
        """Everyone reaches everyone again."""
        for name in sorted(self._cut):
            _run(*self.within(name), "nft", "flush chain inet cut input")
        self._cut.clear()

    # -- life -------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        try:
            self._create()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def _create(self) -> None:
        _run("ip", "link", "add", self._bridge, "type", "bridge")
        _run("ip", "address", "add", f"{self._net}.254/24", "dev", self._bridge)
        _run("ip", "link", "set", self._bridge, "up")
        self._let_through()
        for number, name in enumerate(self._names):
            outside, namespace = f"sv{self._token}-{number}", self._namespace(name)
            _run("ip", "netns", "add", namespace)
            peer = ("peer", "name", "eth0", "netns", namespace)
            _run("ip", "link", "add", outside, "type", "veth", *peer)
            _run("ip", "link", "set", outside, "master", self._bridge, "up")
            inside = ("ip", "-n", namespace)
            _run(*inside, "address", "add", f"{self.host(name)}/24", "dev", "eth0")
            _run(*inside, "link", "set", "eth0", "up")
            _run(*inside, "link", "set", "lo", "up")
            _run(*self.within(name), "nft", "add table inet cut")
            hook = "{ type filter hook input priority 0; }"
            _run(*self.within(name), "nft", f"add chain inet cut input {hook}")

    def _let_through(self) -> None:
        """Where Docker runs, bridged packets pass its firewall, which drops those of strangers."""
        if shutil.which("iptables") and os.path.exists(BRIDGE_FILTER):
            self._passes = ("FORWARD", "-i", self._bridge, "-j", "ACCEPT")
            _run("iptables", "--wait", "-I", *self._passes)

    def destroy(self) -> None:
        """Remove whatever there is of it; what runs in a namespace must have ended before."""
        if self._passes:
            _run("iptables", "--wait", "-D", *self._passes)
            self._passes = ()
        for name in self._names:
            if os.path.exists(f"/run/netns/{self._namespace(name)}"):
                _run("ip", "netns", "delete", self._namespace(name))  # its link goes with it
        if os.path.exists(f"/sys/class/net/{self._bridge}"):
            _run("ip", "link", "delete", self._bridge)

    def _namespace(self, name: str) -> str:
        return f"s{self._token}-{name}"


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
