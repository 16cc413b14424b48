/** Runs of workflows in the console: the list, the graph while tasks wait, its nodes, and the end, in a real browser. Axe on every page. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import {
  answers,
  hasChromium,
  NO_CHROMIUM,
  say,
  sidewaysScrollers,
  Visitor,
  violations,
} from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

describe.runIf(hasChromium)(`runs in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole();

  /** Starts a run with visits that wait at the desk, each at `PATH/ITEM`. */
  async function start(path: string, items: string[]): Promise<string> {
    const { id } = await world.client.runs.start({
      workflow: "work/errands",
      input: { url: world.desk.url(path), items },
    });
    return id;
  }

  const visit = (path: string, options?: BrowserContextOptions): Promise<Page> => {
    world.visitor = new Visitor(world.browser, world.server.url, options);
    return world.visitor.open(path);
  };

  const answer = (path: string, text: string, status = 200) =>
    expect.poll(() => world.desk.answer(path, text, status), { message: path }).toBe(true);

  const status = (page: Page, value: string) =>
    page.locator(`[data-testid=run-status][data-status=${value}]`);
  const nodeOf = (page: Page, ref: string) => page.locator(`[data-testid=run-node][data-node=${ref}]`);

  describe("axe on every page, at two widths, in light and in dark", () => {
    it("I9 has no violation, and nothing scrolls sideways", async () => {
      const { client, server } = world;
      const { id } = await client.conversations.create({ agentId: "clerk" });
      world.visitor = new Visitor(world.browser, server.url);
      const page = await world.visitor.open(`/c/${id}`);
      await say(page, '!say Code:\n```ts\nconst a = "one"; // two\n```\n\n| A |\n|---|\n| 1 |');
      await answers(page, "Code:", false).waitFor();
      const turnId = await page.locator("[data-turn]").first().getAttribute("data-turn");
      await say(page, `!tool transfer {"url": "${world.desk.url("/now/axe")}", "item": "rent"}`);
      await page.getByRole("group", { name: /^Approve this call/ }).waitFor();
      const run = await client.runs.start({
        workflow: "work/letters",
        input: { name: "Ada", subject: "Hello" },
      });

      const paths = [
        ...["/", `/c/${id}`, `/c/${id}/turns/${turnId}`, `/c/${id}/turns/${turnId}/prompt`],
        ...["/inbox", "/turns", "/runs", `/runs/${run.id}`, "/a", "/a/clerk", "/a/clerk/memory", "/memories"],
        ...["/libraries", "/triggers", "/dead-letters", "/nothing"],
      ];
      const found: string[] = [];
      for (const [width, schemes] of [
        [390, ["dark", "light"]],
        [1440, ["light", "dark"]],
      ] as const) {
        await page.setViewportSize({ width, height: 900 });
        for (const path of paths) {
          await page.goto(server.url + path);
          await page.locator("h1").waitFor();
          await expect.poll(() => page.locator("[role=status].skeleton").count()).toBe(0);
          for (const colorScheme of schemes) {
            await page.emulateMedia({ colorScheme });
            // The second scheme changes only the colours.
            for (const violation of await violations(page, colorScheme === schemes[0] ? "all" : "colors"))
              found.push(`${path} ${width} ${colorScheme} ${violation}`);
          }
          for (const element of await sidewaysScrollers(page))
            found.push(`${path} ${width} scrolls: ${element}`);
        }
      }
      expect(found).toEqual([]);
    });
  });

  it("shows the tokens at the nodes of the graph live, and the input and output of each visit of a node", async () => {
    const id = await start("/graph", ["one", "two", "three"]);
    const page = await visit(`/runs/${id}`);
    await nodeOf(page, "visit").getByText("3 working").waitFor();
    await status(page, "running").waitFor();
    expect(await page.locator(".react-flow__edge").count()).toBe(2);
    await page.getByText("each item").waitFor();
    await nodeOf(page, "report").getByText("Not reached yet").waitFor();

    const rows = page.getByRole("region", { name: "Timeline" }).getByTestId("timeline-row");
    await expect.poll(() => rows.count()).toBe(4);
    expect(await rows.nth(1).textContent()).toMatch(/Working, began after [\d.]+ m?s.*so far [\d.]+ m?s$/);

    await answer("/graph/two", "No.", 500);
    await answer("/graph/one", "bread");
    await nodeOf(page, "visit").getByText("1 completed").waitFor();
    await nodeOf(page, "report").getByText("1 waiting").waitFor();
    await answer("/graph/two", "milk");
    await page.getByTestId("run-values").getByText('"three"').waitFor();
    await nodeOf(page, "visit").click();
    const details = page.getByTestId("node-details");
    await details.getByText("1 working, 2 completed").waitFor();
    const tokens = details.getByTestId("run-token");
    expect(await tokens.count()).toBe(3);
    const second = tokens.nth(1);
    await second.getByText("2 attempts").waitFor();
    await second.locator("summary").press("Enter");
    await second.getByText("Attempt 1 failed").waitFor();
    await second.getByText("The desk answered 500. EXECUTION_FAILED").waitFor();
    await second.getByText('"item": "two"').waitFor();
    await second.getByText('"found": "milk"').waitFor();
    expect(await second.locator("summary").textContent()).toMatch(
      /root\.start\.1.*\d+:\d\d.* · [\d.]+ m?s · 2 attempts/,
    );

    await answer("/graph/three", "salt");
    await status(page, "completed").waitFor();
    await details.getByText("3 completed").waitFor();
    await page.getByRole("button", { name: "Close the node" }).press("Enter");
    await page.getByTestId("run-values").getByText('"salt"').first().waitFor();
    // The start, three visits, three that joined, and the report.
    await expect.poll(() => rows.count()).toBe(8);
    const texts = await rows.allTextContents();
    expect(texts.at(0)).toMatch(/^start.*Completed, began after [\d.]+ ms/);
    expect(texts.at(-1)).toMatch(/^report.*Completed, began after [\d.]+ m?s/);
    expect(texts.filter((text) => text.includes("Joined at the fan-in"))).toHaveLength(3);
    expect(texts.join()).not.toContain("so far");
    await rows.last().getByRole("button").press("Enter");
    await details.getByText("3 joined, 1 completed").waitFor();
    await page.keyboard.press("Escape");
    expect(await page.getByTestId("cancel-run").count(), "there is no more work to cancel").toBe(0);
    await page.reload();
    await nodeOf(page, "visit").getByText("3 completed").waitFor();
    await nodeOf(page, "report").getByText("3 joined, 1 completed").waitFor();
  });

  it("lists the runs, filters them by status, and follows links by keyboard", async () => {
    const running = await start("/list", ["one"]);
    const failing = await start("/fails", ["one"]);
    for (let attempt = 1; attempt <= 3; attempt++) await answer("/fails/one", "No.", 500);
    const page = await visit("/");
    // The composer takes the focus once, when the page is ready.
    await expect.poll(() => page.getByTestId("composer").isEnabled()).toBe(true);
    await page.getByTestId("runs").press("Enter");
    await page.waitForURL("**/runs");
    const item = (id: string) => page.locator(`[data-testid=run-item][data-run=${id}]`);
    await item(failing).getByText("Failed").waitFor();
    await item(failing).getByText("SYNC_UNSATISFIABLE").waitFor();
    await item(running).getByText("Running").waitFor();
    expect(await item(running).textContent()).toContain("work/errands@1");
    const shown = await item(failing).textContent();
    expect(shown).toContain(`{"url":"${world.desk.url("/fails")}","items":["one"]}`);
    expect(shown).toMatch(/took [\d.]+ m?s/);
    await page.getByLabel("Status").selectOption("Failed");
    await expect.poll(() => item(running).count()).toBe(0);
    await item(failing).press("Enter");
    await page.waitForURL(`**/runs/${failing}`);
    await nodeOf(page, "visit").press("Enter");
    await page.getByTestId("node-details").getByText("Attempt 3 failed").waitFor();
    await page.goBack();
    expect(new URL(page.url()).search, "the address keeps the filter").toBe("?status=failed");
    await item(failing).waitFor();
    expect(await item(running).count()).toBe(0);
    await page.getByLabel("Status").selectOption("Timed out");
    await page.getByText("No runs have this status.").waitFor();
    await page.getByLabel("Status").selectOption("Running");
    await item(running).waitFor();
    await answer("/list/one", "done");
    await expect.poll(() => item(running).count(), { message: "the list renews itself" }).toBe(0);
  });

  it("cancels a run after a second press, and shows the cancelled visit", async () => {
    const id = await start("/cancel", ["one"]);
    const page = await visit(`/runs/${id}`);
    await nodeOf(page, "visit").getByText("1 working").waitFor();
    await page.getByTestId("cancel-run").press("Enter");
    await page.getByTestId("cancel-run").getByText("Cancel it for good?").waitFor();
    expect(await world.client.runs.get(id)).toMatchObject({ status: "running" });
    await page.getByTestId("cancel-run").press("Enter");
    await status(page, "cancelled").waitFor();
    await nodeOf(page, "visit").getByText("1 cancelled").waitFor();
    expect(await world.client.runs.get(id)).toMatchObject({
      status: "cancelled",
      error: { code: "CANCELLED" },
    });
    await page.getByTestId("run-facts").getByText("The run was cancelled. CANCELLED").waitFor();
    expect(await page.getByTestId("run-facts").locator(".text-danger").count(), "no error").toBe(0);
    expect(await page.getByTestId("cancel-run").count()).toBe(0);
    await page.goto(`${world.server.url}/runs?status=cancelled`);
    const row = page.locator(`[data-testid=run-item][data-run=${id}]`);
    await row.getByText("Cancelled").waitFor();
    expect(await row.locator(".text-danger").count()).toBe(0);
    expect(await row.textContent()).not.toContain("CANCELLED");
  });

  it("retries a failed run, follows it again, and shows both of its ends after it is reopened", async () => {
    const id = await start("/retry", ["one"]);
    const page = await visit(`/runs/${id}`);
    for (let attempt = 1; attempt <= 3; attempt++) await answer("/retry/one", "No.", 500);
    await status(page, "failed").waitFor();
    await page.getByTestId("retry-run").press("Enter");
    await status(page, "running").waitFor();
    await nodeOf(page, "visit").getByText("1 working").waitFor();
    expect(await page.getByTestId("run-facts").textContent()).not.toContain("SYNC_UNSATISFIABLE");
    await answer("/retry/one", "bread");
    await status(page, "completed").waitFor();
    expect(await page.getByTestId("retry-run").count()).toBe(0);
    await page.reload();
    await status(page, "completed").waitFor();
    await nodeOf(page, "visit").click();
    const visited = page.getByTestId("node-details").getByTestId("run-token");
    await visited.getByText("4 attempts").waitFor();
    await visited.getByText("Attempt 3 failed").waitFor();
    await visited.getByText('"found": "bread"').waitFor();
  });

  it("keeps its content while the server cannot be reached, and loads the output when it returns", async () => {
    const id = await start("/offline", ["one"]);
    const page = await visit(`/runs/${id}`);
    await nodeOf(page, "visit").getByText("1 working").waitFor();
    // The stream of the page stays open, and new requests fail.
    await page.context().setOffline(true);
    await answer("/offline/one", "tea");
    await status(page, "completed").waitFor();
    await page.getByRole("alert").getByText("The server could not be reached.").waitFor();
    await nodeOf(page, "visit").getByText("1 completed").waitFor();
    await page.context().setOffline(false);
    await page.getByRole("alert").waitFor({ state: "detached" });
    await page.getByTestId("run-values").getByText('"tea"').first().waitFor();
    const complaints = world.visitor.complaints.splice(0);
    expect(complaints.filter((text) => !text.includes("ERR_INTERNET_DISCONNECTED"))).toEqual([]);
  });

  it("starts a run with a name from a form, which shows input errors, and finds it by its name", async () => {
    const page = await visit("/runs");
    const form = page.getByTestId("start-run");
    await form.locator("summary").press("Enter");
    await form.locator("select").selectOption("work/errands");
    await form.getByLabel("Url").waitFor();
    await form.getByRole("button", { name: "Start run" }).press("Enter");
    await form.getByText("Enter a value.").first().waitFor();
    await form.getByRole("button", { name: "Write JSON" }).press("Enter");
    await form.getByLabel("Input").fill("{");
    await form.getByRole("button", { name: "Start run" }).press("Enter");
    await form.getByRole("alert").getByText("The input is not JSON").waitFor();
    await form.getByLabel("Input").fill("{}");
    await form.getByRole("button", { name: "Start run" }).press("Enter");
    await form.getByRole("alert").getByText("url").waitFor();
    await form.getByRole("button", { name: "Use the form" }).press("Enter");
    await form.getByLabel("Name (optional)").fill("Errands of ÄNNE");
    await form.getByLabel("Url").fill(world.desk.url("/form"));
    await form.getByLabel("Items").fill('{"one": 1}');
    await form.getByRole("button", { name: "Start run" }).press("Enter");
    await form.locator("[aria-invalid=true][data-field='/items']").waitFor();
    await form.getByLabel("Items").fill("[]");
    await form.getByRole("button", { name: "Start run" }).press("Enter");
    await page.waitForURL("**/runs/run_*");
    await status(page, "completed").waitFor();
    await page.getByRole("heading", { name: "Errands of ÄNNE" }).waitFor();
    await expect.poll(() => page.title()).toBe("Errands of ÄNNE · Completed · Dramatis");
    await page.getByRole("link", { name: "All runs" }).press("Enter");
    const named = page.getByTestId("run-item").filter({ hasText: "Errands of ÄNNE" });
    await named.getByText("work/errands@1").waitFor();
    await page.getByLabel("Search runs").fill("nobody's");
    await page.getByLabel("Search runs").press("Enter");
    await page.getByText("No runs match.").waitFor();
    await page.getByLabel("Search runs").fill("of änne");
    await page.getByLabel("Search runs").press("Enter");
    await named.waitFor();
    expect(await page.getByTestId("run-item").count()).toBe(1);
    await page.getByLabel("Search runs").fill("");
    await expect.poll(() => page.getByTestId("run-item").count()).toBeGreaterThan(1);
    expect(world.visitor.complaints.splice(0)).toEqual([
      expect.stringContaining("422"),
      expect.stringContaining("422"),
    ]);
  });

  it("says that a run does not exist", async () => {
    const page = await visit("/runs/run_01JD0000000000000000000000");
    await page.getByRole("alert").getByText("Run not found.").waitFor();
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("404")]);
    await page.getByRole("link", { name: "All runs" }).click();
    await page.waitForURL("**/runs");
  });

  it("says that a page does not exist, with a way on", async () => {
    const page = await visit("/agent");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    await page.getByText("The console has no page at /agent.").waitFor();
    await page.getByRole("link", { name: "Start a new conversation" }).click();
    await page.getByRole("heading", { name: "Choose an agent" }).waitFor();
  });

  it("shows how to make the first trigger, with a link to all fields", async () => {
    const page = await visit("/triggers");
    await page.getByTestId("code").getByText(`curl ${world.server.url}/api/triggers`).waitFor();
    await page.getByRole("link", { name: "All fields of a trigger" }).click();
    await page.locator("#triggers").getByText("/api/triggers").first().waitFor();
  });

  it("fits 390 pixels: the list, and a run as a list of its nodes, live, by touch", async () => {
    const long = `a-${"very-".repeat(20)}long-item`;
    const id = await start("/phone", [long, "two"]);
    const page = await visit("/runs", PHONE);
    const fits = async (name: string) => expect(await sidewaysScrollers(page), name).toEqual([]);
    await page.locator(`[data-run=${id}]`).waitFor();
    await page.getByTestId("start-run").locator("summary").tap();
    await fits("list");
    await page.locator(`[data-run=${id}]`).tap();
    const nodes = page.getByRole("list", { name: "Nodes" }).getByTestId("run-node");
    await nodeOf(page, "visit").getByText("2 working").waitFor();
    expect(await nodes.evaluateAll((all) => all.map((one) => one.getAttribute("data-node")))).toEqual([
      "start",
      "visit",
      "report",
    ]);
    expect(await page.locator(".react-flow").count()).toBe(0);
    await page.getByTestId("timeline-row").nth(1).getByRole("button").tap();
    await page.locator("[data-testid=run-node][data-node=visit][aria-expanded=true]:focus").waitFor();
    await page.getByTestId("run-token").first().locator("summary").tap();
    await page.getByTestId("run-token").first().getByText(long).waitFor();
    await fits("node");
    await answer(`/phone/${long}`, "found");
    await answer("/phone/two", "found, too");
    await status(page, "completed").waitFor();
    await page.getByTestId("run-token").first().getByText('"found": "found"').waitFor();
    await fits("end");
    await page.getByRole("button", { name: /^Menu/ }).tap();
    await page.getByRole("dialog").getByTestId("runs").tap();
    await page.locator(`[data-run=${id}]`).getByText("Completed").waitFor();
    await fits("list again");
  });
});
