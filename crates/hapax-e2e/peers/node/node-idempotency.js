'use strict';
// The service with node-idempotency on Redis. Its own plug-ins are for NestJS and Fastify; this middleware does for Express
// what they do.

const { Idempotency, IdempotencyError, IdempotencyErrorCodes } = require('@node-idempotency/core');
const { RedisStorageAdapter } = require('@node-idempotency/storage-adapter-redis');
const { redisUrl, serve } = require('./orders');

const storage = new RedisStorageAdapter({ url: redisUrl });
const idempotency = new Idempotency(storage);

const STATUSES = {
    [IdempotencyErrorCodes.REQUEST_IN_PROGRESS]: 409,
    [IdempotencyErrorCodes.IDEMPOTENCY_FINGERPRINT_MISSMATCH]: 422,
};

async function idempotent(request, response, next) {
    const { headers, path, method, body } = request;
    const asked = { headers, path, method, body };
    let known;
    try {
        known = await idempotency.onRequest(asked);
    } catch (error) {
        if (!(error instanceof IdempotencyError)) {
            throw error;
        }
        return response.status(STATUSES[error.code] ?? 400).json({ error: error.message });
    }
    if (known) {
        return response.status(known.additional.status).json(known.body);
    }
    const send = response.json.bind(response);
    response.json = async (answer) => {
        response.json = send;
        await idempotency.onResponse(asked, { body: answer, additional: { status: response.statusCode } });
        send(answer);
    };
    return next();
}

storage.connect().then(() => serve([idempotent]));
