"""The service without idempotency."""

from orders import serve

serve()
