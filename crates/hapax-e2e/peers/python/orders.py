"""The orders service that all FastAPI peers wrap."""

import asyncio
import os
import socket

import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel

REDIS_URL = os.environ["REDIS_URL"]

CONNECTIONS_MAX = 1024

app = FastAPI()
executions = 0


class Order(BaseModel):
    """What a client sends."""

    item: str
    amount: int
    sleep_ms: int = 0


@app.post("/orders", status_code=201)
async def create(order: Order) -> dict[str, str | int]:
    """Gives up one turn of the event loop, as a handler with a database does."""
    global executions
    executions += 1
    await asyncio.sleep(0)
    if order.sleep_ms > 0:
        await asyncio.sleep(order.sleep_ms / 1000)
    return {"id": "ord_1842", "item": "book", "amount": 2, "state": "created"}


@app.get("/executions")
async def count() -> PlainTextResponse:
    """The number of orders that were executed."""
    return PlainTextResponse(str(executions))


def serve() -> None:
    """Serves orders and prints the address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(CONNECTIONS_MAX)
    print("listening 127.0.0.1:%d" % listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, access_log=False, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])
