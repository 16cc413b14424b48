/** Requests for approval in sight: the inbox, and the questions of a workflow inside its conversation, in a real browser. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { answers, hasChromium, NO_CHROMIUM, say, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

const PAYOUT = '!tool pay_out {"amount": 125000.5, "currency": "EUR", "due": "2031-03-04"}';

describe.runIf(hasChromium)(`requests in sight (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole();

  async function visit(width: number): Promise<Page> {
    world.visitor = new Visitor(world.browser, world.server.url, {
      viewport: { width, height: 844 },
      locale: "en-GB",
      timezoneId: "Europe/Berlin",
    });
    const { id } = await world.client.conversations.create({ agentId: "clerk" });
    return world.visitor.open(`/c/${id}`);
  }

  it("I1 a question of a workflow appears inside its conversation, with a form of its schema, and its run is a link", async () => {
    const page = await visit(390);
    await say(page, PAYOUT);
    const gate = page.getByTestId("gate");
    await gate.getByRole("heading", { name: "How much do we pay out?" }).waitFor();
    await gate.getByText("Ask the cashier").waitFor();
    await gate.getByTestId("readable").getByText("€125,000.50").waitFor();
    await gate
      .getByTestId("readable")
      .getByText(/^Tuesday,? 4 March 2031$/)
      .waitFor();
    await gate.getByText('"amount": 125000.5').waitFor();
    expect(await sidewaysScrollers(page)).toEqual([]);
    await page.reload();
    await gate.getByLabel("Amount").fill("98000");
    await gate.getByText("98,000").waitFor();
    await gate.getByRole("button", { name: "Send answer" }).click();
    await gate.getByText("Enter a value.").waitFor();
    await gate.getByLabel("At", { exact: true }).fill("2031-03-05T09:30");
    const run = page.getByTestId("tool-card").getByRole("link", { name: "Open the run" });
    expect(await run.getAttribute("href")).toMatch(/^\/runs\/run_/);
    await gate.getByRole("button", { name: "Send answer" }).click();
    await answers(page, /98000.*2031-03-05T08:30:00.000Z/, false).waitFor();
    await expect.poll(() => gate.count()).toBe(0);
  });

  it("I1 APPROVE-1 the inbox counts the requests, links to their places, and takes the answers", async () => {
    const page = await visit(1440);
    const desk = world.desk.url("/now/inbox");
    await say(page, `!tool transfer {"url": "${desk}", "item": "rent"}`);
    await page.getByRole("group", { name: /^Approve this call/ }).waitFor();
    const place = new URL(page.url()).pathname;
    const run = await world.client.runs.start({ workflow: "work/refunds", input: { orders: ["Z9"] } });
    await page.getByTestId("inbox").click();
    await page.reload();
    const item = (text: string) => page.getByTestId("inbox-item").filter({ hasText: text });
    await item("Refund the order Z9?").waitFor();
    await page.getByTestId("inbox-badge").getByText("2").waitFor();
    const links = await page
      .getByTestId("inbox-item")
      .getByRole("link")
      .evaluateAll((all) => all.map((one) => one.getAttribute("href")));
    expect(links.map((link) => link?.replace(/#.*/, "")).sort()).toEqual([place, `/runs/${run.id}`].sort());
    await item("Refund the order Z9?").getByRole("button", { name: "Deny" }).click();
    await page.getByTestId("inbox-note").getByText("Denied.").waitFor();
    await page.getByTestId("inbox-badge").getByText("1").waitFor();
    await item("rent").getByRole("button", { name: "Approve" }).click();
    await page.getByText("Nothing waits for you.").waitFor();
    await expect.poll(() => world.desk.bodiesOf("/now/inbox")).toEqual(["rent"]);
    expect(await page.getByTestId("inbox-badge").count()).toBe(0);
  });
});
