"""A function with the idempotency of Powertools for AWS Lambda on Redis: calls a second from one caller, as JSON."""

import json
import os
import sys
import time
import warnings

from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.persistence.redis import RedisCachePersistenceLayer

KEYS = 1000

# Outside of Lambda there is no remaining time by which a claim could expire.
warnings.simplefilter("ignore")

store = RedisCachePersistenceLayer(url=os.environ["REDIS_URL"])
config = IdempotencyConfig(event_key_jmespath="key", expires_after_seconds=24 * 3600)


def bare(order):
    return {"id": "ord_1842", "item": "book", "amount": 2, "state": "created"}


create = idempotent_function(bare, data_keyword_argument="order", persistence_store=store, config=config)


def rate(call, key_of, seconds):
    """The calls of one caller in a second."""
    calls = 0
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        call(order={"key": key_of(calls), "item": "book", "amount": 2})
        calls += 1
    return calls / (time.perf_counter() - started)


seconds = float(sys.argv[1])
for number in range(KEYS):
    create(order={"key": f"known-{number}", "item": "book", "amount": 2})
print(
    json.dumps(
        {
            "bare": rate(bare, lambda number: f"bare-{number}", min(seconds, 0.5)),
            "fresh": rate(create, lambda number: f"fresh-{number}", seconds),
            "replay": rate(create, lambda number: f"known-{number % KEYS}", seconds),
        }
    )
)
