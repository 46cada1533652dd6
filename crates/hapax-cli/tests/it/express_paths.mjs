// Express with default settings: /ORDERS and /orders/ match /orders. It prints its port.

import express from "express";

const app = express();
let made = 0;
app.post("/orders", (request, response) => response.status(201).send(`order ${(made += 1)}`));
app.get("/made", (request, response) => response.send(`${made}`));
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
