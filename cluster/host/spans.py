"""OpenTelemetry spans of the calls that a node serves; off unless `traces_to` names a collector.

Needs the extra `otel` (`pip install 'suiro[otel]'`). Off, no call passes through here. A span's
parent is what the caller sent as `traceparent`, and what the node calls meanwhile has the span as
its parent: so a request is one tree through all services. Streams last for ever, and have none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from suiro.model.error_base import SuiroError
from suiro.model.errors import InvalidConfig
from suiro.transport.api import Kind
from suiro.transport.trace import TRACE_KEY, current, work_for
from suiro.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from suiro.model.ids import NodeId
    from suiro.transport.api import Peer, Route

CLOSE_MS: Final = 3_000
"""How long the last spans may take to a collector that may be gone."""


class Spans:
    """Makes a span around each call of a route."""

    def __init__(self, endpoint: str, node_id: NodeId, roles: Sequence[str]) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise InvalidConfig(f"traces_to needs `pip install 'suiro[otel]'`: {error}") from None
        resource = Resource.create(
            {
                "service.name": f"suiro-{'-'.join(roles)}",
                "service.instance.id": str(node_id),
                "service.version": VERSION,
            }
        )
        self._provider = TracerProvider(resource=resource)
        exporter = OTLPSpanExporter(endpoint=endpoint, insecure=not endpoint.startswith("https"))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("suiro", VERSION)

    def around(self, route: Route) -> Route:
        """The same route, with a span for each of its calls."""
        if route.method.kind is not Kind.UNARY:
            return route
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        propagator = TraceContextTextMapPropagator()
        name = route.method.name.rpartition(".v1.")[2]
        attributes = {"rpc.system": "grpc", "rpc.method": name}

        async def handle(request: Any, peer: Peer) -> Any:
            parent = current()
            span = self._tracer.start_span(
                name,
                context=propagator.extract({TRACE_KEY: parent}),
                kind=SpanKind.SERVER,
                attributes={**attributes, "client.address": peer.host},
            )
            mine = span.get_span_context()
            work_for(f"00-{mine.trace_id:032x}-{mine.span_id:016x}-01")
            try:
                return await route.handler(request, peer)
            except SuiroError as error:
                span.set_status(Status(StatusCode.ERROR, f"{error.code.name}: {error}"))
                raise
            finally:
                work_for(parent)
                span.end()

        return replace(route, handler=handle)

    def close(self) -> None:
        """Send what is left."""
        self._provider.force_flush(CLOSE_MS)
        self._provider.shutdown()
