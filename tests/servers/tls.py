"""TLS in front of another server on loopback, until it is killed. Arguments: certificate, key, that port, port."""

import asyncio
import ssl
import sys


async def carry(reader, writer):
    """Hand on what comes, until either side ends."""
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def serve(certificate, key, behind, port):
    """Listen."""

    async def joined(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", behind)
        await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = await asyncio.start_server(joined, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


asyncio.run(serve(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
