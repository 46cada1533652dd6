// Runs the user flows of the console in Chromium. Started by a Rust test in `src/console/tests.rs`, which starts a
// listener and sets these variables:
//
//   HAPAX_CONSOLE_URL, HAPAX_CONSOLE_TOKEN   the listener
//   HAPAX_CONSOLE_KEY                        the prefix of the keys of its records
//   HAPAX_BROWSER                            the path of the browser
//   HAPAX_BROWSER_MODULES                    a node_modules folder with playwright-core and axe-core
//   HAPAX_SCREENSHOTS                        a folder for screenshots; none are taken without it
"use strict";

const path = require("node:path");
const assert = require("node:assert/strict");

const env = (name) => process.env[name] ?? assert.fail(`${name} is not set`);
const modules = env("HAPAX_BROWSER_MODULES");
const { chromium } = require(path.join(modules, "playwright-core"));
const axe = require(path.join(modules, "axe-core")).source;

const { flows } = require("./flows.js");

// The rest of a long list looks the same.
const PICTURE_HEIGHT_MAX = 1600;

// Generous, because the machine may be busy.
const TIME_MAX_MS = 60_000;

async function main() {
  const world = { url: env("HAPAX_CONSOLE_URL"), token: env("HAPAX_CONSOLE_TOKEN"), key: env("HAPAX_CONSOLE_KEY"), axe };
  const browser = await chromium.launch({
    executablePath: env("HAPAX_BROWSER"),
    args: ["--no-sandbox", "--disable-dev-shm-usage"],
  });
  const only = process.argv[2];
  let failed = 0;
  try {
    for (const [name, flow] of flows.filter(([name]) => !only || name.includes(only))) {
      const context = await browser.newContext({ baseURL: world.url, ...flow.context });
      context.setDefaultTimeout(TIME_MAX_MS);
      const page = await context.newPage();
      const complaints = [];
      page.on("pageerror", (error) => complaints.push(String(error)));
      page.on("console", (message) => {
        if (/content security policy/i.test(message.text())) complaints.push(message.text());
      });
      try {
        await flow(page, { ...world, context, picture: (picture) => take(page, picture) });
        assert.deepEqual(complaints, [], "the page complained");
        console.log(`ok ${name}`);
      } catch (error) {
        failed += 1;
        console.log(`FAILED ${name}\n${error.stack}`);
        await take(page, `failed-${name.replaceAll(" ", "-")}`);
      } finally {
        await context.close();
      }
    }
  } finally {
    await browser.close();
  }
  console.log(`${flows.length} flows, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function take(page, name) {
  const folder = process.env.HAPAX_SCREENSHOTS;
  if (!folder) return;
  const { width } = page.viewportSize();
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const clip = { x: 0, y: 0, width, height: Math.min(height, PICTURE_HEIGHT_MAX) };
  await page.screenshot({ path: path.join(folder, `${name}.png`), fullPage: true, clip });
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
