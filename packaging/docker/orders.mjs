// The example service: counts the orders that reach it, and does not handle keys.
import { createServer } from "node:http";

let orders = 0;

const server = createServer((request, response) => {
  request.resume().on("end", () => {
    if (request.method === "POST") orders += 1;
    response.writeHead(request.method === "POST" ? 201 : 200, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ orders }));
  });
});

server.listen(Number(process.env.PORT ?? 3000), () => console.log(`orders on port ${server.address().port}`));
