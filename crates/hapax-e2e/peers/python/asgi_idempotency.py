"""The service with asgi-idempotency-header on Redis."""

from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends.redis import RedisBackend
from orders import REDIS_URL, app, serve
from redis.asyncio import Redis

app.add_middleware(IdempotencyHeaderMiddleware, backend=RedisBackend(redis=Redis.from_url(REDIS_URL)))

serve()
