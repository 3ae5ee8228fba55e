"""An S3 server on loopback, which holds objects in memory: ``s3.py PORT``."""

import sys

from moto.server import main

if __name__ == "__main__":
    main(["-H", "127.0.0.1", "-p", sys.argv[1]])
