/** The inspector in the console: the list of turns, the views of a turn and dead letters, in a real browser. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContextOptions, Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { hasChromium, NO_CHROMIUM, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

/** A turn that asks the warehouse twice and has no model call left for its answer. */
const NIGHT = ['!tool stock {"item": "lamps"}', "!then", '!tool stock {"item": "ropes"}'].join("\n");

describe.runIf(hasChromium)(`the inspector (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole("inspector");
  let failed: { id: string; turnId: string };

  const visit = (path: string, options?: BrowserContextOptions): Promise<Page> => {
    world.visitor = new Visitor(world.browser, world.server.url, options);
    return world.visitor.open(path);
  };

  async function talk(
    content: string,
    more: { budget?: { modelCalls: number } } = {},
    client = world.client,
  ) {
    const { id } = await client.conversations.create({ agentId: "clerk" });
    let turnId = "";
    for await (const frame of client.streamTurn(id, { content, ...more })) turnId = frame.turnId ?? turnId;
    return { id, turnId };
  }

  /** Saves an image of the page if a folder for images is set. */
  async function shoot(page: Page, name: string): Promise<void> {
    const folder = process.env.SHOTS;
    if (folder === undefined) return;
    mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: join(folder, `${name}.png`) });
  }

  beforeAll(async () => {
    await talk("!say Good morning.");
    failed = await talk(NIGHT, { budget: { modelCalls: 2 } });
    await talk("How many lamps are there?");
  });

  for (const width of [390, 1440]) {
    it(`G22 INSPECT-1 INSPECT-3 INSPECT-4 leads an operator to the reason of last night's failure at ${width} px`, async () => {
      const page = await visit("/", {
        viewport: { width, height: 900 },
        colorScheme: width === 390 ? "dark" : "light",
      });
      const fits = async (name: string) => {
        await shoot(page, `${name}-${width}`);
        expect(await sidewaysScrollers(page)).toEqual([]);
      };
      if (width < 768) await page.getByRole("button", { name: /^Menu/ }).click();
      await page.getByTestId("turns").click();
      await page.waitForURL("**/turns");
      await expect.poll(() => page.getByTestId("turn-row").count()).toBeGreaterThan(2);
      await fits("turns");
      await page.getByRole("button", { name: "Failed", exact: true }).click();
      await page.waitForURL("**/turns?status=failed");
      await expect.poll(() => page.getByTestId("turn-row").count()).toBe(1);
      await page.getByRole("button", { name: "Failed last night" }).click();
      await page.waitForURL("**/turns?status=failed&since=*");
      await page.reload();
      const row = page.getByTestId("turn-row");
      await row.getByText("BUDGET_EXCEEDED").waitFor();
      await row.press("Enter");
      await page.waitForURL(`**/c/${failed.id}/turns/${failed.turnId}`);

      const failure = page.getByTestId("failure");
      await failure.getByText("BUDGET_EXCEEDED").first().waitFor();
      await failure
        .getByText(/no shelf for ropes/)
        .first()
        .waitFor();
      expect(await page.title()).toMatch(/^Turn: .+ · Dramatis$/);

      const steps = page.getByTestId("waterfall").getByTestId("trace-step");
      await expect.poll(() => steps.count()).toBe(5);
      await steps.filter({ hasText: "3 attempts" }).first().waitFor();
      await steps.first().locator("summary").focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await steps.nth(1).getByText("Attributes").waitFor();
      expect(await steps.nth(1).textContent()).toMatch(/\$0\.0/);
      await fits("waterfall");

      const view = async (name: string) => {
        await page.getByTestId(`view-${name}`).click();
        await page.waitForURL(`**/turns/${failed.turnId}/${name}`);
        await page.reload();
      };
      await view("request");
      await page
        .getByTestId("provider-request")
        .getByText(/You are a clerk of the warehouse/)
        .waitFor();
      await page.getByTestId("replies").getByText(/ropes/).first().waitFor();
      const shown = page.getByTestId("provider-request");
      expect(await shown.getAttribute("data-call")).toBe("2");
      await page.getByTestId("call-1").press("Enter");
      await page.waitForURL("**/request?call=1");
      await page.reload();
      await page.locator("[data-testid=provider-request][data-call='1']").waitFor();
      expect(await shown.getByText(/no shelf for lamps/).count()).toBe(0);
      await shown
        .getByText(/tool_calls/)
        .first()
        .waitFor();
      expect(await page.getByTestId("call-1").getAttribute("aria-current")).toBe("true");
      await fits("request");

      await page.getByTestId("view-prompt").click();
      await page.waitForURL("**/prompt?call=1");
      expect(await page.locator("[data-part=moves]").count()).toBe(0);
      await page.getByTestId("call-2").click();
      await page.waitForURL("**/prompt?call=2");
      await page.locator("[data-testid=prompt][data-call='2']").waitFor();
      for (const part of ["instructions", "tools", "message", "moves"])
        expect(await page.locator(`[data-part=${part}]`).textContent()).toMatch(/\d %/);
      await fits("prompt");

      await view("journal");
      const entries = page.getByTestId("entry");
      await expect.poll(() => entries.last().getAttribute("data-type")).toBe("turn.failed");
      expect(await page.locator("[data-type='message.user']").textContent()).toContain("lamps");
      await fits("journal");

      await view("incidents");
      await page.locator("[data-type='tool.failed'] summary").first().click();
      await page.getByTestId("causes").getByText("tool.requested").first().waitFor();
      await fits("incidents");

      await view("projections");
      await page.getByLabel("Projection of the conversation").selectOption("llm_context");
      await page
        .getByTestId("projections")
        .getByText(/llm_context, up to entry/)
        .waitFor();
      await fits("projections");

      await view("replay");
      await page.getByTestId("replay").click();
      const result = page.getByTestId("replay-result");
      await result.getByText("Equal").waitFor();
      await result.getByText("0 calls of models").waitFor();
      await fits("replay");

      await page.getByTestId("open-conversation").click();
      await page.getByTestId("turn-menu").first().click();
      await page.getByTestId("inspect").first().click();
      await page.waitForURL(`**/c/${failed.id}/turns/${failed.turnId}`);
    });
  }

  it("G22 filters the list by agent, tool and user, and keeps the filters in the address", async () => {
    const page = await visit("/turns?agent=porter");
    await page.getByText("No turn fits these filters.").waitFor();
    const filters = page.getByTestId("turn-filters");
    await filters.getByRole("button", { name: "Clear filters" }).click();
    await filters.getByLabel("Tool").fill("shop/stock");
    await filters.getByLabel("Tool").press("Enter");
    await page.waitForURL("**/turns?tool=shop%2Fstock");
    await expect.poll(() => page.getByTestId("turn-row").count()).toBe(1);
    await filters.getByLabel("Until").fill("2026-01-01T00:00");
    await filters.getByLabel("Until").press("Enter");
    await page.getByText("No turn fits these filters.").waitFor();
    await page.goBack();
    await expect.poll(() => page.getByTestId("turn-row").count()).toBe(1);
    expect(await filters.getByLabel("Until").inputValue()).toBe("");
  });

  it("G22 filters the list by a month, a day and the last hours, and says which times it takes", async () => {
    const [day = ""] = new Date().toISOString().split("T");
    const page = await visit(`/turns?tool=shop/stock&since=${day.slice(0, 7)}&until=${day}`);
    const filters = page.getByTestId("turn-filters");
    const rows = (count: number) => expect.poll(() => page.getByTestId("turn-row").count()).toBe(count);
    const pressed = () => filters.getByRole("group", { name: "Time" }).locator("[aria-pressed=true]");
    await rows(1);
    expect(await filters.getByLabel("From").inputValue()).toBe(day.slice(0, 7));
    expect(await pressed().count()).toBe(0);
    for (const [name, last] of [
      ["Last 24 hours", "24h"],
      ["Last 7 days", "7d"],
    ] as const) {
      await filters.getByRole("button", { name }).click();
      await page.waitForURL(`**/turns?tool=shop%2Fstock&last=${last}`);
      await page.reload();
      await rows(1);
      expect(await pressed().textContent()).toBe(name);
      expect(await filters.getByLabel("From").inputValue()).toBe("");
    }
    await filters.getByLabel("From").fill("next week");
    await filters.getByLabel("From").press("Enter");
    await page.waitForURL("**/turns?tool=shop%2Fstock&since=next+week");
    await page.getByRole("alert").getByText("Must be a month such as `2026-01`, a day such as").waitFor();
    await filters.getByRole("button", { name: "Any time" }).click();
    await page.waitForURL("**/turns?tool=shop%2Fstock");
    await rows(1);
    // The browser reports the refused request.
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("422")]);
  });

  for (const width of [390, 1440]) {
    it(`G22 shows which turns have failed tools and which were stopped, and why, at ${width} px`, async () => {
      const survived = await talk('!tool stock {"item": "nails"}');
      const { id } = await world.client.conversations.create({ agentId: "clerk" });
      const { turnId } = await world.client.turns.start(id, { content: '!tool stock {"item": "screws"}' });
      await world.client.turns.cancel(id, turnId);
      const page = await visit("/turns?issues=tool&status=completed", { viewport: { width, height: 900 } });
      const row = page.locator(`[data-turn=${survived.turnId}]`);
      await row.getByText("1 tool call failed").waitFor();
      await row.getByText("Completed, with issues").waitFor();
      await shoot(page, `issues-${width}`);
      expect(await sidewaysScrollers(page)).toEqual([]);
      await page.getByRole("button", { name: "Stopped", exact: true }).click();
      await page.getByText("No turn fits these filters.").waitFor();
      await page.getByRole("button", { name: "With failed tools" }).click();
      await page.locator(`[data-turn=${turnId}]`).getByText("Stopped").waitFor();
      await page.goto(`${world.server.url}/c/${survived.id}/turns/${survived.turnId}`);
      await page.getByText("1, 1 failed").waitFor();
      const step = page.locator("[data-testid=trace-step][data-kind=tool]");
      await step.locator("summary").click();
      await step.getByTestId("step-error").getByText("The warehouse has no shelf for nails.").waitFor();
      expect(await step.textContent()).toMatch(/no shelf for nails.*Input.*"nails".*Span/s);
      await shoot(page, `failed-step-${width}`);
      expect(await sidewaysScrollers(page)).toEqual([]);
    });
  }

  for (const width of [390, 1440]) {
    it(`G22 A70 finds what an agent told a person, at ${width} px`, async () => {
      const { id, turnId } = await talk("!say Your zebra arrives on Tuesday.");
      const page = await visit("/turns?text=zebra%20tuesday", { viewport: { width, height: 900 } });
      const found = page.locator(`a[href$="${turnId}"]`);
      await expect
        .poll(async () => {
          await page.reload();
          await page
            .getByText(/No message has|To Clerk|to Clerk/)
            .first()
            .waitFor();
          return found.count();
        })
        .toBe(2);
      await page.getByRole("heading", { name: "Messages", exact: true }).waitFor();
      const shown = (label: string) => page.getByLabel(label, { exact: true }).isVisible();
      expect([await shown("Text"), await shown("From")]).toEqual([true, width > 1_000]);
      await page.getByRole("button", { name: "From agents" }).click();
      await page.waitForURL("**/turns?text=zebra+tuesday&role=agent");
      await found.getByText("Clerk for local").waitFor();
      expect(await found.getByTestId("found-title").textContent()).toBe(
        "!say Your zebra arrives on Tuesday.",
      );
      expect(await found.locator("mark").allTextContents()).toEqual(["zebra", "Tuesday"]);
      await shoot(page, `search-${width}`);
      expect(await sidewaysScrollers(page)).toEqual([]);
      await found.press("Enter");
      await page.waitForURL(`**/turns/${turnId}`);
      await page.goBack();
      await page.getByRole("button", { name: "Clear filters" }).click();
      await page.getByTestId("turn-row").first().waitFor();
      await page.goto(`${world.server.url}/c/${id}/turns/${turnId}`);
      await page.getByTestId("turn-answer").getByText("Your zebra arrives on Tuesday.").waitFor();
      const facts = page.getByRole("region", { name: "Facts" });
      expect(await facts.textContent()).toContain("Started bylocal");
      expect(await sidewaysScrollers(page)).toEqual([]);
    });
  }

  it("G22 shows the steps of a long turn in pages", async () => {
    const spans = Array.from({ length: 250 }, (_, index) => ({
      spanId: index.toString(16).padStart(16, "0"),
      ...{ name: "execute_tool stock", kind: "internal" },
      startedAt: new Date(index * 1_000).toISOString(),
      endedAt: new Date(index * 1_000 + 500).toISOString(),
      attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "stock" },
    }));
    const page = await visit("/turns", { viewport: { width: 390, height: 844 } });
    const json = { traceId: "0".repeat(32), spans, partial: false };
    await page.route("**/api/**/trace", (route) => route.fulfill({ json }));
    await page.goto(`${world.server.url}/c/${failed.id}/turns/${failed.turnId}`);
    const steps = page.getByTestId("trace-step");
    await expect.poll(() => steps.count()).toBe(100);
    await page.getByRole("button", { name: "Show 100 more of 250 steps" }).press("Enter");
    await page.getByRole("button", { name: "Show 50 more of 250 steps" }).press("Enter");
    await expect.poll(() => steps.count()).toBe(250);
    expect(await sidewaysScrollers(page)).toEqual([]);
  });

  it("G22 INSPECT-2 shows a participant the turn, but no prompt, no request and no dead letters", async () => {
    const headers = { "x-member": "ann" };
    const ann = createClient({
      baseUrl: world.server.url,
      fetch: (url, init) => fetch(url, { ...init, headers: { ...Object(init.headers), ...headers } }),
    });
    const { id, turnId } = await talk("!say Hello, Ann.", {}, ann);
    const page = await visit(`/c/${id}/turns/${turnId}/prompt`, { extraHTTPHeaders: headers });
    const asked: string[] = [];
    page.on("request", (request) => asked.push(request.url()));
    await page.getByTestId("operators-only").getByText("Only operators and administrators").waitFor();
    await page.reload();
    await page.getByTestId("operators-only").waitFor();
    await shoot(page, "participant");
    await page.getByTestId("view-request").click();
    await page.getByTestId("replies").getByText("Hello, Ann.").first().waitFor();
    await expect.poll(() => page.getByTestId("operators-only").count()).toBe(1);
    expect(await page.locator("main").textContent()).not.toContain("clerk of the warehouse");
    expect(asked.filter((url) => /\/api\/.*\/prompt(?:\?|$)/.test(url))).toEqual([]);
    await page.goto(`${world.server.url}/turns`);
    await expect.poll(() => page.getByTestId("turn-row").count()).toBe(1);
    expect(await page.getByTestId("dead-letters").count()).toBe(0);
    await page.goto(`${world.server.url}/dead-letters`);
    await page.getByTestId("operators-only").waitFor();
  });

  it("G22 REPLACE-7 names the author of a message, and lets only the author edit it or have it answered again", async () => {
    const headers = { "x-member": "ann" };
    const ann = createClient({
      baseUrl: world.server.url,
      fetch: (url, init) => fetch(url, { ...init, headers: { ...Object(init.headers), ...headers } }),
    });
    const { id } = await talk("!say Hello, Ann.", {}, ann);
    const page = await visit(`/c/${id}`);
    await page.getByRole("article", { name: "ann" }).waitFor();
    await page.getByRole("button", { name: "Trace of this answer" }).waitFor();
    for (const name of ["Answer again", "Edit this message"])
      expect(await page.getByRole("button", { name }).count()).toBe(0);
    const own = await visit(`/c/${id}`, { extraHTTPHeaders: headers });
    for (const name of ["Answer again", "Edit this message"])
      await own.getByRole("button", { name }).waitFor();
  });

  it("G22 DEAD-4 delivers a dead letter again", async () => {
    const ask = (path: string) => fetch(`${world.server.url}/api/test/${path}`);
    await ask("post");
    await expect.poll(async () => (await world.client.deadLetters.list()).deadLetters.length).toBe(1);
    const page = await visit("/turns", { viewport: { width: 390, height: 844 } });
    await page.getByTestId("dead-letters").click();
    await page.waitForURL("**/dead-letters");
    const letter = page.getByTestId("dead-letter");
    await letter.getByText("The door is closed.").waitFor();
    await shoot(page, "dead-letters");
    expect(await sidewaysScrollers(page)).toEqual([]);
    await ask("unlock");
    await letter.getByTestId("redeliver").click();
    await letter.getByTestId("redeliver").click();
    await expect.poll(async () => (await world.client.deadLetters.list()).deadLetters.length).toBe(0);
    await page.reload();
    await page.getByText("No dead letters.").waitFor();
  });
});
