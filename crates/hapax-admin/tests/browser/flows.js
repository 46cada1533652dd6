// User flows in the console, one function each.
"use strict";

const assert = require("node:assert/strict");

const PAGES = ["/", "/records", "/audit", "/config"];
const flows = [];

function flow(name, walk, context = {}) {
  walk.context = context;
  flows.push([name, walk]);
}

async function login(page, world, next = "/", name = "Ada") {
  await page.goto(next);
  await page.getByLabel("Admin token").fill(world.token);
  await page.getByLabel(/Your name/).fill(name);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

// Opens the first record in `state` and returns its path.
async function open(page, world, state) {
  await login(page, world, `/records?state=${state}`);
  await page.locator("tbody a").first().click();
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
  return new URL(page.url()).pathname;
}

async function confirm(page, title, reason) {
  await page.getByLabel(/Why\?/).fill(reason);
  await page.getByRole("checkbox").check();
  await page.getByRole("button", { name: title }).click();
}

async function serious(page, world) {
  await page.evaluate(world.axe);
  const found = await page.evaluate(() => window.axe.run());
  return found.violations
    .filter((violation) => ["serious", "critical"].includes(violation.impact))
    .map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.html).join(" | ")}`);
}

// A mobile browser zooms out when a page is too wide, so the width that it reports is of no use.
async function isTooWide(page) {
  return (await page.evaluate(() => document.documentElement.scrollWidth)) > page.viewportSize().width;
}

flow("login redirects to the requested page", async (page, world) => {
  await page.goto("/records?state=failed");
  assert.match(page.url(), /\/login\?next=/);
  await world.picture("login");
  await login(page, world, "/records?state=failed");
  assert.match(page.url(), /\/records\?state=failed$/);
});

flow("a wrong token is refused", async (page, world) => {
  await page.goto("/login");
  await page.getByLabel("Admin token").fill("not-the-token-at-all");
  await page.getByRole("button", { name: "Log in" }).click();
  assert.equal(await page.getByRole("alert").textContent(), "The token is wrong.");
  await page.goto("/");
  assert.match(page.url(), /\/login$/);
});

flow("the token is in no cookie, storage or page", async (page, world) => {
  await login(page, world);
  const [cookie] = await world.context.cookies();
  assert.ok(cookie.httpOnly && cookie.sameSite === "Strict", JSON.stringify(cookie));
  assert.ok(!cookie.value.includes(world.token));
  assert.equal(await page.evaluate(() => document.cookie), "");
  for (const path of PAGES) {
    await page.goto(path);
    assert.ok(!(await page.content()).includes(world.token), path);
  }
});

flow("the overview shows counts and charts", async (page, world) => {
  await login(page, world);
  const tiles = await page.locator(".tile .name").allTextContents();
  assert.deepEqual(tiles, ["uncertain", "in progress", "completed", "failed", "released"]);
  assert.equal(await page.getByRole("img", { name: /^Requests: now ran/ }).count(), 1);
  assert.ok((await page.locator(".plot path").count()) >= 5);
  await world.picture("overview-light");
});

flow("the overview updates without a reload", async (page, world) => {
  await login(page, world);
  const live = page.locator("#live");
  await live.evaluate((element) => element.firstElementChild.setAttribute("data-old", ""));
  await page.waitForResponse((response) => response.url().endsWith("/live") && response.ok());
  await page.waitForFunction(() => !document.querySelector("[data-old]"));
  assert.equal(await page.getByRole("status").textContent(), "Live");
});

flow("the overview can be paused and resumed", async (page, world) => {
  await login(page, world);
  await page.getByRole("button", { name: "Pause" }).click();
  assert.equal(await page.getByRole("status").textContent(), "Paused");
  await page.locator("#live").evaluate((element) => element.firstElementChild.setAttribute("data-old", ""));
  await page.getByRole("button", { name: "Resume" }).click();
  await page.waitForFunction(() => !document.querySelector("[data-old]"));
});

flow("an overview without a connection reports that and recovers", async (page, world) => {
  await login(page, world);
  await page.route("**/live", (route) => route.abort());
  await page.waitForFunction(() => document.getElementById("live-state").textContent === "No connection");
  await page.unroute("**/live");
  await page.waitForFunction(() => document.getElementById("live-state").textContent === "Live");
});

flow("the theme is switched and remembered", async (page, world) => {
  await login(page, world);
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  await page.getByRole("button", { name: /light and dark/ }).click();
  const dark = await back();
  assert.notEqual(dark, light);
  await page.reload();
  assert.equal(await back(), dark);
  await world.picture("overview-dark");
}, { colorScheme: "light" });

flow("the default theme is the theme of the system", async (page, world) => {
  await login(page, world, "/records");
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(dark, "rgb(16, 19, 28)");
  await world.picture("records-dark");
}, { colorScheme: "dark" });

flow("the uncertain tile links to the uncertain records", async (page, world) => {
  await login(page, world);
  await page.getByRole("link", { name: /uncertain/ }).first().click();
  const badges = await page.locator("tbody .badge").allTextContents();
  assert.ok(badges.length > 0 && badges.every((badge) => badge.startsWith("uncertain")), badges.join());
});

flow("records are filtered by state and operation", async (page, world) => {
  await login(page, world, "/records");
  await page.getByLabel("State").selectOption("completed");
  await page.getByLabel("Operation starts with").fill("POST /v1/completed");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.waitForURL(/operation=/);
  assert.deepEqual(await page.locator("tbody .badge").allTextContents(), ["completed"]);
  await page.getByRole("link", { name: "Clear" }).click();
  assert.ok((await page.locator("tbody tr").count()) > 5);
  await world.picture("records-light");
});

flow("a long list is split into pages", async (page, world) => {
  await login(page, world, "/records");
  const first = await page.locator("tbody a").first().textContent();
  await page.getByRole("link", { name: "Older" }).click();
  assert.notEqual(await page.locator("tbody a").first().textContent(), first);
  await page.getByRole("link", { name: "Newest" }).click();
  assert.equal(await page.locator("tbody a").first().textContent(), first);
});

flow("a key is found and does not appear in the page or its URL", async (page, world) => {
  await login(page, world, "/records");
  await page.getByLabel("The key, in full").fill(`${world.key}-completed`);
  await page.getByRole("button", { name: "Find" }).click();
  assert.equal(await page.locator("tbody tr").count(), 1);
  assert.ok(!page.url().includes(world.key) && !(await page.content()).includes(world.key));
});

flow("invalid and unknown keys are reported", async (page, world) => {
  await login(page, world, "/records");
  await page.getByLabel("The key, in full").fill("ключ");
  await page.getByRole("button", { name: "Find" }).click();
  assert.match(await page.getByRole("alert").textContent(), /not a valid key/);
  await page.getByLabel("The key, in full").fill("never-used");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText("No record matches.").waitFor();
  await world.picture("records-empty");
});

flow("a record shows its timeline", async (page, world) => {
  await login(page, world, "/records?operation=POST /v1/lapsed");
  await page.locator("tbody a").first().click();
  const events = await page.locator(".timeline .what").allTextContents();
  assert.equal(events[0], "First claimed");
  assert.match(events.join(), /lapsed: it is unknown whether the operation happened/);
  assert.match(events.at(-1), /A sweep removes the record/);
  await world.picture("record-uncertain");
});

flow("a stored result is shown on request and the view is audited", async (page, world) => {
  await open(page, world, "completed");
  assert.ok(!(await page.content()).includes("canary-payload"));
  await page.getByRole("link", { name: "Show the stored result" }).click();
  assert.match(await page.getByLabel("Stored result").textContent(), /canary-payload/);
  await world.picture("record-payload");
  await page.goto("/audit");
  assert.match(await page.locator("tbody tr").first().textContent(), /viewed the result/);
});

flow("an uncertain record is settled as applied", async (page, world) => {
  const path = await open(page, world, "uncertain");
  await page.getByRole("link", { name: "It happened" }).click();
  await world.picture("settle");
  await page.getByLabel(/Status for retries/).fill("201");
  await page.getByLabel("Body", { exact: true }).fill('{"paid": true}');
  await page.getByLabel(/More headers/).fill("Location: /payments/7");
  await confirm(page, "Settle as applied", "seen at the bank");
  await page.getByText("Settled as applied.").waitFor();
  assert.equal(await page.locator(".heading .badge").textContent(), "completed");
  assert.match(await page.locator(".facts").textContent(), /success, http 201/);
  await page.goto("/audit");
  await world.picture("audit");
  const entry = await page.locator("tbody tr").first().textContent();
  assert.match(entry, /Ada, console from 127\.0\.0\.1/);
  assert.match(entry, /seen at the bank/);
  assert.ok((await page.locator("tbody tr a").first().getAttribute("href")) === path);
});

flow("an invalid response is refused and the form keeps its input", async (page, world) => {
  const path = await open(page, world, "uncertain");
  await page.goto(`${path}/settle`);
  await page.getByLabel(/Status for retries/).fill("204");
  await page.getByLabel("Body", { exact: true }).fill("typed");
  await confirm(page, "Settle as applied", "a try");
  assert.match(await page.getByRole("alert").textContent(), /status 204 has no body/);
  assert.equal(await page.getByLabel("Body", { exact: true }).inputValue(), "typed");
});

flow("a result that is not JSON is refused for a function", async (page, world) => {
  await open(page, world, "uncertain&operation=function");
  await page.getByRole("link", { name: "It happened" }).click();
  await page.getByLabel(/Result for retries/).fill("not json");
  await page.getByLabel("The result is").selectOption("function");
  await confirm(page, "Settle as applied", "a try");
  assert.match(await page.getByRole("alert").textContent(), /not JSON/);
  assert.equal(await page.getByLabel(/Why\?/).inputValue(), "a try", "the input is kept");
});

flow("an uncertain record is released", async (page, world) => {
  await open(page, world, "uncertain");
  await page.getByRole("link", { name: "It did not happen" }).click();
  await page.getByText("RUNS THE OPERATION").waitFor();
  await confirm(page, "Release the key", "not at the bank");
  await page.getByText("Released.", { exact: false }).first().waitFor();
  assert.equal(await page.locator(".heading .badge").textContent(), "released");
});

flow("a record is deleted", async (page, world) => {
  const path = await open(page, world, "failed");
  await page.getByRole("link", { name: "Delete" }).click();
  await world.picture("delete");
  await confirm(page, "Delete the record", "a test");
  await page.getByText("The record was deleted.").waitFor();
  const gone = await page.goto(path);
  assert.equal(gone.status(), 404);
  await world.picture("refusal");
});

flow("nothing is changed without a reason and a confirmation", async (page, world) => {
  await open(page, world, "uncertain");
  await page.getByRole("link", { name: "Delete" }).click();
  const button = page.getByRole("button", { name: "Delete the record" });
  await button.click();
  assert.match(page.url(), /\/delete$/, "the browser asks for the reason");
  // The server validates the form, too.
  await page.locator("form.stack").evaluate((form) => { form.noValidate = true; });
  await button.click();
  assert.match(await page.getByRole("alert").textContent(), /Not confirmed, nothing was changed/);
});

flow("a form refuses a record that has changed meanwhile", async (page, world) => {
  const path = await open(page, world, "uncertain");
  await page.getByRole("link", { name: "It did not happen" }).click();
  const other = await world.context.newPage();
  await other.goto(`${path}/settle`);
  await confirm(other, "Settle as applied", "first");
  await other.getByText("Settled as applied.").waitFor();
  await confirm(page, "Release the key", "second");
  assert.match(await page.getByRole("alert").textContent(), /changed since it was shown/);
});

flow("a record in progress has no actions", async (page, world) => {
  await open(page, world, "in_progress");
  await page.getByText("the operation is in progress").waitFor();
  assert.equal(await page.locator("main .actions a").count(), 0);
});

flow("another site's form changes nothing", async (page, world) => {
  const path = await open(page, world, "completed");
  const other = await world.context.newPage();
  await other.setContent(`<form method="post" action="${world.url}${path}/delete">
    <input name="version" value="x"><input name="reason" value="x"><input name="sure" value="yes"><button>go</button></form>`);
  await other.getByRole("button").click();
  await other.waitForURL(/127\.0\.0\.1/);
  const still = await page.goto(path);
  assert.equal(still.status(), 200);
});

flow("the configuration is shown", async (page, world) => {
  await login(page, world, "/config");
  await page.getByRole("heading", { name: "defaults" }).waitFor();
  await page.getByText("/v1/payments/**").waitFor();
  await world.picture("config");
});

flow("all actions work with the keyboard", async (page, world) => {
  await page.goto("/login");
  // The page has loaded when its first field is focused.
  await page.locator("input:focus").waitFor();
  await page.keyboard.type(world.token);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  await page.goto("/records");
  await page.getByLabel("The key, in full").focus();
  await page.keyboard.type(`${world.key}-released`);
  await page.keyboard.press("Enter");
  await page.waitForURL(/id=/);
  await page.locator("tbody a").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Timeline" }).waitFor();
});

flow("pages fit on a phone", async (page, world) => {
  const path = await open(page, world, "completed");
  for (const at of [...PAGES, path, `${path}/delete`]) {
    await page.goto(at);
    assert.equal(await isTooWide(page), false, `${at} is wider than the screen`);
    await world.picture(`phone-${at.length > 20 ? (at.endsWith("delete") ? "delete" : "record") : at.slice(1) || "overview"}`);
  }
}, { viewport: { width: 375, height: 740 }, isMobile: true });

flow("pages work without scripts", async (page, world) => {
  await open(page, world, "completed");
  await page.goto("/");
  assert.ok((await page.locator(".tile").count()) === 5);
}, { javaScriptEnabled: false });

flow("logging out ends the session", async (page, world) => {
  await login(page, world);
  await page.getByRole("button", { name: "Log out" }).click();
  assert.match(page.url(), /\/login$/);
  await page.goto("/records");
  assert.match(page.url(), /\/login\?next=/);
});

for (const colorScheme of ["light", "dark"]) {
  flow(`pages have no accessibility violations in ${colorScheme}`, async (page, world) => {
    await page.goto("/login");
    assert.deepEqual(await serious(page, world), [], "/login");
    const path = await open(page, world, "uncertain");
    const forms = ["settle", "release", "delete"].map((form) => `${path}/${form}`);
    for (const at of [...PAGES, "/records?state=uncertain", path, ...forms, "/nothing"]) {
      await page.goto(at);
      assert.deepEqual(await serious(page, world), [], at);
    }
  }, { colorScheme, bypassCSP: true });
}

module.exports = { flows };
