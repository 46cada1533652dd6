'use strict';
// The service with express-idempotency and its Redis adapter, as in their documentation.

const { getSharedIdempotencyService, idempotency } = require('express-idempotency');
const RedisAdapter = require('express-idempotency-redis-adapter').default;
const { create, redisUrl, serve } = require('./orders');

const dataAdapter = new RedisAdapter({ connectionConfig: { url: redisUrl } });

dataAdapter.connect().then(() => {
    serve([idempotency({ dataAdapter })], (request, response) => {
        if (!getSharedIdempotencyService().isHit(request)) {
            return create(request, response);
        }
    });
});
