// Express as people write it: /ORDERS and /orders/ are /orders. It listens on a port of the system's choice, which it prints.

import express from "express";

const app = express();
let made = 0;
app.post("/orders", (request, response) => response.status(201).send(`order ${(made += 1)}`));
app.get("/made", (request, response) => response.send(`${made}`));
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
