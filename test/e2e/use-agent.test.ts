/** The Agents SDK's React hook in a real browser, without any code of the package. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { hasChromium, launchChromium, NO_CHROMIUM } from "../support/browser.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-use-agent-"));
const PATH = "/use-agent-page";
/** Chromium takes a page from `route.fulfill` for one from the internet, which may not reach this machine. */
const LOCAL_PAGES = "--disable-features=LocalNetworkAccessChecks";

/** Returns a page of its own script. */
async function buildPage(): Promise<string> {
  const bundle = await rolldown({
    input: join(import.meta.dirname, "pages/use-agent.tsx"),
    platform: "browser",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
  });
  const { output } = await bundle.generate({ format: "iife" });
  await bundle.close();
  const script = output[0].code.replaceAll("</script", "<\\/script");
  return `<!doctype html><div id="root"></div><script>${script}</script>`;
}

describe.runIf(hasChromium)(`a page with useAgent (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  let start: RunningStart;
  let browser: Browser;
  let html: string;

  beforeAll(async () => {
    [start, browser, html] = await Promise.all([
      npmStart(join(folder, "state")),
      launchChromium(LOCAL_PAGES),
      buildPage(),
    ]);
  });

  afterAll(async () => {
    await browser?.close();
    await start?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Opens the page on a conversation, at the server's own origin. */
  async function open(id: string): Promise<{ page: Page; complaints: string[]; sockets: string[] }> {
    const page = await browser.newPage();
    const complaints: string[] = [];
    const sockets: string[] = [];
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("websocket", (socket) => sockets.push(new URL(socket.url()).pathname));
    await page.route(`**${PATH}*`, (route) => route.fulfill({ contentType: "text/html", body: html }));
    await page.goto(`${start.url}${PATH}?id=${id}`);
    return { page, complaints, sockets };
  }

  const shown = (page: Page) => page.locator("p").allTextContents();
  const words = (count: number) => Array.from({ length: count }, (_, n) => `word-${n + 1}`).join(" ");

  it("G27 G28 connects, sends, shows the answer as it grows, and goes on after a reload in the middle of it", async () => {
    const { id } = await createClient({ baseUrl: start.url }).conversations.create({ agentId: "assistant" });
    const { page, complaints, sockets } = await open(id);
    await page.locator("input").fill("!slow 120 30");
    await page.locator("input").press("Enter");
    await page.getByText("word-10 ").waitFor();
    const [question, growing = ""] = await shown(page);
    expect(question).toBe("!slow 120 30");
    expect(words(120).startsWith(growing)).toBe(true);
    expect(growing.length).toBeLessThan(words(120).length);

    await page.reload();
    await page.getByText("word-10 ").waitFor();
    const [, resumed = ""] = await shown(page);
    expect(words(120).startsWith(resumed)).toBe(true);
    expect(resumed.length).toBeLessThan(words(120).length);
    await page.locator("[data-ended=true]").waitFor();
    expect(await shown(page)).toEqual(["!slow 120 30", words(120)]);

    await page.locator("input").fill("!say Again.");
    await page.locator("input").press("Enter");
    await page.getByText(/^Again\.$/).waitFor();
    await page.reload();
    await page.getByText(/^Again\.$/).waitFor();
    expect(await shown(page)).toEqual(["!slow 120 30", words(120), "!say Again.", "Again."]);
    expect(new Set(sockets)).toEqual(new Set([`/agents/conversation/${id}`]));
    expect(sockets).toHaveLength(3);
    expect(complaints).toEqual([]);
    await page.close();
  });
});
