"""The logs of containers over HTTPS, as the API server reads them from a kubelet for `kubectl logs` and `helm test --logs`.

Source of truth: the path of the kubelet's server (pkg/kubelet/server/server.go, getContainerLogs).
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

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

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, name="logs")
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
