'use strict';
// Idempotency as it is often written by hand: GET, SET NX, SET. Bodies are not compared.

const Redis = require('ioredis');
const { lockMs, redisUrl, serve } = require('./orders');

const RETENTION_S = 24 * 3600;
const PENDING = 'pending';

const redis = new Redis(redisUrl);

async function idempotent(request, response, next) {
    const key = request.get('Idempotency-Key');
    if (!key) {
        return next();
    }
    const name = `idempotency:${key}`;
    const known = await redis.get(name);
    if (known !== null && known !== PENDING) {
        const { status, body } = JSON.parse(known);
        return response.status(status).json(body);
    }
    if (known === PENDING || (await redis.set(name, PENDING, 'PX', lockMs, 'NX')) === null) {
        return response.status(409).json({ error: 'in progress' });
    }
    const send = response.json.bind(response);
    response.json = async (body) => {
        response.json = send;
        await redis.set(name, JSON.stringify({ status: response.statusCode, body }), 'EX', RETENTION_S);
        send(body);
    };
    return next();
}

serve([idempotent]);
