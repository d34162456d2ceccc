"""The logs of containers over HTTPS, as the API server reads them from a kubelet for `kubectl logs` and `helm test --logs`.

Source of truth: the path of the kubelet's server (pkg/kubelet/server/server.go, getContainerLogs).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import urlsplit

from tests.http_server import serving_on_loopback

Log = Callable[[str, str, str], bytes | None]


@contextmanager
def serving_logs(certificate: Path, log: Log) -> Iterator[int]:
    """The port at which the logs are; `log` has the one of a namespace, a pod and a container, or None."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            _, *path = urlsplit(self.path).path.split("/")
            content = log(path[1], path[2], path[3]) if path[0] == "containerLogs" and len(path) == 4 else None
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Type", "text/plain")
            self.end_headers()
            self.wfile.write(content or b"")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))
    with serving_on_loopback(Handler, context) as port:
        yield port
