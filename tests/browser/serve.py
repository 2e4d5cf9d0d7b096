"""``streamlit run app.py`` as anybody starts it, with a second port that tells a test what the process holds."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from streamlit.web import cli


class Probe(BaseHTTPRequestHandler):
    """Answers any request with the facts."""

    def do_GET(self) -> None:
        content = json.dumps(facts()).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Keep the server's log for the page's own lines."""


def facts() -> dict[str, Any]:
    """Resident models, hooks on them, bytes kept, pyplot figures, and the process's allocated and resident bytes."""
    if "hookviz.ui.resources" not in sys.modules:
        return {}
    from hookviz.ui import resources
    from hookviz.ui.freed_memory import resident_bytes
    from tests.nets import hook_count

    gc.collect()
    pyplot = sys.modules.get("matplotlib.pyplot")
    models = list(resources.models()._values.values())
    return {
        "models": [one.name for one in models],
        "hooks": sum(hook_count(one.module) for one in models),
        "bytes_kept": resources.captures().total,
        "bytes_allowed": resources.BYTES_KEPT,
        "models_allowed": resources.MODELS_KEPT,
        "pyplot_figures": len(pyplot.get_fignums()) if pyplot else 0,
        "in_use": _allocated(),
        "resident": resident_bytes(),
    }


class _MallocInfo(ctypes.Structure):
    """glibc's ``struct mallinfo2``, summed over all threads' heaps."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = tuple((name, ctypes.c_size_t) for name in _names)


def _allocated() -> int:
    """Bytes that ``malloc`` gave out and did not get back."""
    read = ctypes.CDLL(None).mallinfo2
    read.restype = _MallocInfo
    info = read()
    return int(info.uordblks + info.hblkhd)


def end_with(parent: int) -> None:
    """End this process once its parent has: a test run that is killed cannot tidy up."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    page_port, probe_port, *words = sys.argv[1:]
    threading.Thread(target=HTTPServer(("127.0.0.1", int(probe_port)), Probe).serve_forever, daemon=True).start()
    sys.argv = ["streamlit", "run", "app.py", "--server.port", page_port, "--server.headless", "true", "--", *words]
    cli.main()
