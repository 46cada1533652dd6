"""FastAPI on uvicorn as the upstream.

It listens on the given addresses and forwards each request to the scripted origin on the same address. Responses are framed by
Starlette and uvicorn.

Usage: python fastapi_origin.py PORT ORIGIN_PORT ADDRESS...
"""

import socket
import sys

import httpcore
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

METHODS = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"]
# Each side frames its own messages.
FRAMING = {b"content-length", b"transfer-encoding"}

port, origin_port, *addresses = sys.argv[1:]
app = FastAPI(openapi_url=None)
origins = httpcore.AsyncConnectionPool(max_connections=None, max_keepalive_connections=0)


def lines(headers):
    """Header fields in lower case, as ASGI requires, without those of the framing."""
    lower = [(name.lower(), value) for name, value in headers]
    return [(name, value) for name, value in lower if name not in FRAMING]


async def forward(request: Request) -> httpcore.Response:
    """The response of the origin, whose body is not yet read."""
    body = await request.body()
    address, _ = request.scope["server"]
    target = request.scope["raw_path"]
    if query := request.scope["query_string"]:
        target += b"?" + query
    url = httpcore.URL(scheme="http", host=address, port=int(origin_port), target=target)
    headers = [*lines(request.headers.raw), (b"content-length", str(len(body)).encode())]
    return await origins.handle_async_request(httpcore.Request(request.method, url, headers=headers, content=body))


async def pieces(answer: httpcore.Response):
    """Streams a body of unknown length. An aborted body aborts the connection."""
    try:
        async for piece in answer.aiter_stream():
            yield piece
    finally:
        await answer.aclose()


@app.api_route("/{path:path}", methods=METHODS)
async def play(request: Request):
    answer = await forward(request)
    if any(name.lower() == b"transfer-encoding" for name, _ in answer.headers):
        response = StreamingResponse(pieces(answer), answer.status)
    else:
        body = await answer.aread()
        await answer.aclose()
        response = Response(body, answer.status)
    response.raw_headers.extend(lines(answer.headers))
    return response


if __name__ == "__main__":
    listeners = [socket.create_server((address, int(port))) for address in addresses]
    # The response of the origin has a date.
    config = uvicorn.Config(app, log_level="critical", date_header=False)
    uvicorn.Server(config).run(sockets=listeners)
