// Provokes refusals of the sidecar through SDKs, and prints one line of JSON for each error that they raise.
// usage: node refused.mjs http://127.0.0.1:PORT CASE, where CASE is the idempotency key too

import { createRequire } from "node:module";
import { request } from "gaxios";
import { GoCardlessClient } from "gocardless-nodejs";
import Kitsu from "kitsu";
import { Resend } from "resend";
import Stripe from "stripe";
import { Svix } from "svix";

const [base, key] = process.argv.slice(2);
const url = new URL(base);
const version = (name) => createRequire(import.meta.url)(`${import.meta.dirname}/node_modules/${name}/package.json`).version;

const stripe = new Stripe("sk_test_of_the_tests", {
  protocol: "http", host: url.hostname, port: url.port, maxNetworkRetries: 0, telemetry: false,
});
const goCardless = new GoCardlessClient("token", "SANDBOX", { raiseOnIdempotencyConflict: true });
goCardless._api._baseUrl = base;
const resend = new Resend("re_of_the_tests", { baseUrl: `${base}/resend` });
const svix = new Svix("token", { serverUrl: `${base}/svix`, numRetries: 0 });
const kitsu = new Kitsu({ baseURL: `${base}/jsonapi`, pluralize: false });

// For each SDK, a request whose amount makes it differ from others, and the code in its error.
const sdks = {
  stripe: {
    shape: "stripe",
    send: (amount) => stripe.charges.create({ amount, currency: "eur" }, { idempotencyKey: key }),
    code: (error) => error.code,
  },
  "stripe (v2)": {
    shape: "stripe",
    send: (amount) => stripe.v2.core.accounts.create({ display_name: `${amount}` }, { idempotencyKey: key }),
    code: (error) => error.code,
  },
  gaxios: {
    shape: "google",
    send: (amount) =>
      request({ url: `${base}/google/orders`, method: "POST", data: { amount }, headers: { "Idempotency-Key": key }, retry: false }),
    code: (error) => error.response.data.error.details[0].metadata.code,
  },
  kitsu: {
    shape: "jsonapi",
    send: (amount) => kitsu.create("orders", { amount }, { headers: { "Idempotency-Key": key } }),
    code: (error) => error.errors[0].code,
  },
  resend: {
    shape: "template",
    send: async (amount) => {
      const { error } = await resend.emails.send(
        { from: "a@example.com", to: "b@example.com", subject: `${amount}`, text: "" },
        { idempotencyKey: key },
      );
      if (error) throw Object.assign(error, { constructor: { name: "error" } });
    },
    code: (error) => error.name,
  },
  svix: {
    shape: "template",
    send: (amount) => svix.message.create("app", { eventType: "order.paid", payload: { amount } }, { idempotencyKey: key }),
    code: (error) => error.body.code,
  },
  "gocardless-nodejs": {
    shape: "template",
    send: (amount) => goCardless.payments.create({ amount: `${amount}`, currency: "GBP", links: { mandate: "MD1" } }, key),
    code: (error) => error.errors[0].reason,
  },
};

for (const [name, { shape, send, code }] of Object.entries(sdks)) {
  const report = { sdk: `${name} for node`, version: version(name.split(" ")[0]), shape, class: "none", code: null };
  let amount = 1;
  try {
    await send(amount);
    amount = 2;
    await send(amount);
  } catch (error) {
    report.class = error.constructor.name;
    try {
      report.code = code(error) ?? null;
    } catch (missing) {
      report.code = `no code: ${missing.message}`;
    }
    report.message = error.message;
    report.after = amount;
  }
  console.log(JSON.stringify(report));
}
