// Express as the upstream. It listens on the given addresses and forwards each request to the scripted origin on the same
// address. Responses are framed by Express and Node.
//
// Usage: node express_origin.mjs PORT ORIGIN_PORT ADDRESS...

import http from "node:http";
import { buffer } from "node:stream/consumers";
import express from "express";

const [port, originPort, ...addresses] = process.argv.slice(2);
// Each side frames its own messages.
const FRAMING = ["content-length", "transfer-encoding"];
const agent = new http.Agent({ keepAlive: true });

/** Header fields as pairs of name and value, without those of the framing. */
function lines(raw) {
  const pairs = [];
  for (let at = 0; at < raw.length; at += 2) pairs.push([raw[at], raw[at + 1]]);
  return pairs.filter(([name]) => !FRAMING.includes(name.toLowerCase()));
}

/** The response of the origin, whose body is not yet read. */
function forward(request, body) {
  const headers = [...lines(request.rawHeaders), ["Content-Length", String(body.length)]];
  const { method, originalUrl: path } = request;
  const host = request.socket.localAddress;
  return new Promise((resolve, reject) => {
    const options = { agent, host, port: originPort, method, path, headers: headers.flat() };
    http.request(options, resolve).on("error", reject).end(body);
  });
}

/** Streams a body of unknown length. An aborted body aborts the connection. */
function stream(answer, response) {
  response.flushHeaders();
  answer.on("data", (data) => response.write(data));
  answer.on("error", () => response.destroy());
  answer.on("end", () => response.end());
}

const app = express();
app.use(async (request, response) => {
  const answer = await forward(request, await buffer(request));
  response.status(answer.statusCode);
  for (const [name, value] of lines(answer.rawHeaders)) response.appendHeader(name, value);
  if (answer.headers["transfer-encoding"]) stream(answer, response);
  else response.send(await buffer(answer));
});

for (const address of addresses) http.createServer(app).listen(Number(port), address);
