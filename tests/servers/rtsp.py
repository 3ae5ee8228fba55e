"""A real RTSP server for tests: serves a folder on loopback until it is killed. Arguments: folder, port."""

import asyncio
import sys

from aio_rtsp_toolkit.server import serve

asyncio.run(serve(sys.argv[1], host="127.0.0.1", port=int(sys.argv[2])))
