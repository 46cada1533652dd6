// Express as the service behind the sidecar. It listens on every address that it is given and passes each request on to the scripted
// origin on the same address. What it answers is framed by Express and Node.
//
// Usage: node express_origin.mjs PORT ORIGIN_PORT ADDRESS...

import http from "node:http";
import { buffer } from "node:stream/consumers";
import express from "express";

const [port, originPort, ...addresses] = process.argv.slice(2);
// Both sides frame their own messages.
const FRAMING = ["content-length", "transfer-encoding"];
const agent = new http.Agent({ keepAlive: true });

/** Header lines as pairs of name and value, without those of the framing. */
function lines(raw) {
  const pairs = [];
  for (let at = 0; at < raw.length; at += 2) pairs.push([raw[at], raw[at + 1]]);
  return pairs.filter(([name]) => !FRAMING.includes(name.toLowerCase()));
}

/** What the origin answers; its body is still to be read. */
function asked(request, body) {
  const headers = [...lines(request.rawHeaders), ["Content-Length", String(body.length)]];
  const { method, originalUrl: path } = request;
  const host = request.socket.localAddress;
  return new Promise((resolve, reject) => {
    const options = { agent, host, port: originPort, method, path, headers: headers.flat() };
    http.request(options, resolve).on("error", reject).end(body);
  });
}

/** Sends a body of unknown length as it comes. One that breaks off breaks the connection. */
function stream(answer, response) {
  response.flushHeaders();
  answer.on("data", (data) => response.write(data));
  answer.on("error", () => response.destroy());
  answer.on("end", () => response.end());
}

const app = express();
app.use(async (request, response) => {
  const answer = await asked(request, await buffer(request));
  response.status(answer.statusCode);
  for (const [name, value] of lines(answer.rawHeaders)) response.appendHeader(name, value);
  if (answer.headers["transfer-encoding"]) stream(answer, response);
  else response.send(await buffer(answer));
});

for (const address of addresses) http.createServer(app).listen(Number(port), address);
