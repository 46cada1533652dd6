'use strict';
// The orders service that all Express peers wrap.

const express = require('express');

let executions = 0;

/** How long a claim is valid, for peers that can be told. */
exports.lockMs = Number(process.env.LOCK_MS);

exports.redisUrl = process.env.REDIS_URL;

/** Gives up one turn of the event loop, as a handler with a database does. */
exports.create = async (request, response) => {
    executions += 1;
    await new Promise(setImmediate);
    if (request.body.sleep_ms > 0) {
        await new Promise((resolve) => setTimeout(resolve, request.body.sleep_ms));
    }
    response.status(201).json({ id: 'ord_1842', item: 'book', amount: 2, state: 'created' });
};

/** Serves orders behind a middleware and prints the address. */
exports.serve = (middleware, create = exports.create) => {
    const app = express();
    app.get('/executions', (request, response) => response.type('text').send(String(executions)));
    app.use(express.json());
    app.post('/orders', ...middleware, create);
    const server = app.listen(0, '127.0.0.1', () => {
        console.log(`listening 127.0.0.1:${server.address().port}`);
    });
};
