/** React hooks in a real browser: the Agents SDK's own without any code of the package, and `useConversation` with tools of the page. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { hasChromium, launchChromium, NO_CHROMIUM } from "../support/browser.ts";
import { buildPage, LOCAL_PAGES } from "../support/built-page.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-use-agent-"));
const PATH = "/page-of-a-product";

describe.runIf(hasChromium)(`a page with a hook (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  let start: RunningStart;
  let browser: Browser;
  let pages: Record<"use-agent" | "client-tools", string>;

  beforeAll(async () => {
    const [useAgent, clientTools] = [buildPage("use-agent"), buildPage("client-tools")];
    [start, browser] = await Promise.all([npmStart(join(folder, "state")), launchChromium(LOCAL_PAGES)]);
    pages = { "use-agent": await useAgent, "client-tools": await clientTools };
  });

  afterAll(async () => {
    await browser?.close();
    await start?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Opens the page on a conversation, at the server's own origin. */
  async function open(
    id: string,
    name: keyof typeof pages = "use-agent",
  ): Promise<{ page: Page; complaints: string[]; sockets: string[] }> {
    const page = await browser.newPage();
    const complaints: string[] = [];
    const sockets: string[] = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("websocket", (socket) => sockets.push(new URL(socket.url()).pathname));
    await page.route(`**${PATH}*`, (route) => route.fulfill({ contentType: "text/html", body: pages[name] }));
    await page.goto(`${start.url}${PATH}?id=${id}`);
    return { page, complaints, sockets };
  }

  const shown = (page: Page) => page.locator("p").allTextContents();
  const words = (count: number) => Array.from({ length: count }, (_, n) => `word-${n + 1}`).join(" ");

  it("G27 G28 connects, sends, shows the answer as it grows, and continues after a reload in the middle of it", async () => {
    const { id } = await createClient({ baseUrl: start.url }).conversations.create({ agentId: "assistant" });
    const { page, complaints, sockets } = await open(id);
    await page.locator("input").fill("!slow 120 90");
    await page.locator("input").press("Enter");
    await page.getByText("word-10 ").waitFor();
    const [question, growing = ""] = await shown(page);
    expect(question).toBe("!slow 120 90");
    expect(words(120).startsWith(growing)).toBe(true);
    expect(growing.length).toBeLessThan(words(120).length);

    await page.reload();
    await page.getByText("word-10 ").waitFor();
    const [, resumed = ""] = await shown(page);
    expect(words(120).startsWith(resumed)).toBe(true);
    expect(resumed.length).toBeLessThan(words(120).length);
    await page.locator("[data-ended=true]").waitFor();
    expect(await shown(page)).toEqual(["!slow 120 90", words(120)]);

    await page.locator("input").fill("!say Again.");
    await page.locator("input").press("Enter");
    await page.getByText(/^Again\.$/).waitFor();
    await page.reload();
    await page.getByText(/^Again\.$/).waitFor();
    expect(await shown(page)).toEqual(["!slow 120 90", words(120), "!say Again.", "Again."]);
    expect(new Set(sockets)).toEqual(new Set([`/agents/conversation/${id}`]));
    // One for each load. A slow machine may need more: the SDK's socket connects again after four seconds without an answer.
    expect(sockets.length).toBeGreaterThanOrEqual(3);
    expect(complaints).toEqual([]);
    await page.close();
  });

  it("CLAIM-1 G10 a tool of the page runs in one of two tabs, and both show the answer", async () => {
    const { id } = await createClient({ baseUrl: start.url }).conversations.create({ agentId: "assistant" });
    const first = await open(id, "client-tools");
    const tabs = [first, await open(id, "client-tools")];
    for (const { page } of tabs) await page.locator("[data-status=open]").waitFor();
    const titles = async () => (await Promise.all(tabs.map((tab) => tab.page.title()))).join("");
    for (const times of [1, 2]) {
      await first.page.locator("input").fill("!tool place {}");
      await first.page.locator("input").press("Enter");
      for (const tab of tabs)
        await tab.page
          .getByText(/Berlin/)
          .nth(times - 1)
          .waitFor();
    }
    expect(["ran 2", "ran 1ran 1"]).toContain(await titles());
    for (const tab of tabs) {
      expect(tab.complaints).toEqual([]);
      await tab.page.close();
    }
  });
});
