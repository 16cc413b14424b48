/** The console in a real browser. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../../src/client/index.ts";
import {
  answers,
  hasChromium,
  launchChromium,
  NO_CHROMIUM,
  say,
  shownTexts,
  sidewaysScrollers,
  textBrightness,
  Visitor,
} from "../support/browser.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import {
  errorReply,
  nothingLearned,
  type OpenAIServer,
  startOpenAIServer,
  textReply,
} from "../support/openai-server.ts";
import { processTree, runsTheWorker } from "../support/processes.ts";

const folder = mkdtempSync(join(tmpdir(), "dramatis-browser-"));
let start: RunningStart;

afterAll(async () => {
  await start.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Returns the offline model's answer to `!slow COUNT`. */
function words(count: number): string {
  return Array.from({ length: count }, (_, index) => `word-${index + 1}`).join(" ");
}

if (hasChromium) {
  let browser: Browser;
  let visitor: Visitor;

  beforeAll(async () => {
    browser = await launchChromium();
  });

  afterAll(() => browser.close());

  afterEach(async () => {
    await visitor.leave();
    expect(visitor.complaints).toEqual([]);
  });

  const open = (options?: BrowserContextOptions) => {
    visitor = new Visitor(browser, start.url, options);
    return visitor.open();
  };

  /** Opens the page of a new conversation, for one with the assistant. */
  const visit = async (options?: BrowserContextOptions) => {
    const page = await open(options);
    await page.getByTestId("agent-picker").getByText("Assistant", { exact: true }).click();
    return page;
  };

  describe("the console with the offline model", () => {
    beforeAll(async () => {
      start = await npmStart(join(folder, "offline"));
    });

    it("G1 begins empty; choosing an agent begins a conversation, and its answer grows", async () => {
      const page = await visit();
      await page.getByText("No conversations yet.").waitFor();
      await say(page, "!slow 60 30");

      await page.waitForURL("**/c/conv_*");
      await page.getByTestId("message-user").getByText("!slow 60 30").waitFor();
      await answers(page, "word-60", false).waitFor();
      const texts = await shownTexts(page);
      expect(texts.length).toBeGreaterThan(10);
      expect(texts.filter((text) => !words(60).startsWith(text))).toEqual([]);
      expect(texts.at(-1)).toBe(words(60));
      const item = page.getByTestId("conversation-item");
      expect(await item.textContent()).toContain("!slow 60 30");
      expect(await item.getAttribute("aria-current")).toBe("page");
      await page.getByTestId("new-conversation").click();
      await page.getByTestId("agent-picker").waitFor();
      await page.goBack();
      await answers(page, "word-60", false).waitFor();
    });

    it("I9 says that no model is connected and how to connect one, and the agent introduces itself", async () => {
      const page = await visit();
      const banner = page.getByTestId("offline-banner");
      await banner.getByRole("button", { name: "Connect a model" }).click();
      for (const way of ["OPENAI_API_KEY=", "http://127.0.0.1:11434/v1", '"binding": "AI"'])
        await page.getByTestId("connect-model").getByText(way).waitFor();
      await page.keyboard.press("Escape");
      await banner.getByRole("button", { name: "Hide this note" }).click();
      await page.reload();
      await page.getByTestId("agent-picker").getByText("Assistant", { exact: true }).click();
      await say(page, "Hello");
      await answers(page, /I am a helpful assistant\..*calculator/s, false).waitFor();
      expect(await banner.count()).toBe(0);
      await page.getByTestId("new-conversation").click();
      await page.getByTestId("agent-picker").getByText("Manager", { exact: true }).click();
      await say(page, "Write a haiku about autumn");
      await answers(page, "No language model is connected", false).waitFor();
      expect(await page.getByTestId("tool-card").count()).toBe(0);
    });

    it("G22 finds and retries a turn that failed on purpose, as docs/inspector.md describes", async () => {
      const client = createClient({ baseUrl: start.url });
      const { id } = await client.conversations.create({ agentId: "assistant", title: "Rehearsal" });
      await client.turns.start(id, { content: "What is 12*(3+4)?", budget: { modelCalls: 1 } });
      const page = await open();
      await page.getByTestId("turns").click();
      await page.getByRole("button", { name: "Failed", exact: true }).click();
      await page.getByRole("button", { name: "Last 24 hours" }).click();
      await page.waitForURL("**/turns?status=failed&last=24h");
      await page.getByTestId("turn-row").getByText("BUDGET_EXCEEDED").click();
      const failure = page.getByTestId("failure");
      await failure
        .getByText(/Raise the budget/)
        .first()
        .waitFor();
      await page.getByTestId("open-conversation").click();
      await page.getByRole("button", { name: "Answer again" }).click();
      await answers(page, "calculator answered 84", false).waitFor();
      const { turns } = await client.turns.list({ conversation: id });
      expect(turns.map(({ status }) => status)).toContain("failed");
      await client.conversations.delete(id);
    });

    it("shows the input, the progress and the result of a tool call", async () => {
      const page = await visit();
      await say(page, "What is 12*(3+4)?");
      const card = page.locator("[data-testid=tool-card][data-tool=calculator][data-state=completed]");
      await card.waitFor();
      await answers(page, "calculator answered 84", false).waitFor();
      expect(await card.textContent()).toContain("12*(3+4)Done");
      await card.locator("summary").press("Enter");
      await card.getByText('"expression": "12*(3+4)"').waitFor();
      await card.getByText('"result": 84').waitFor();

      await say(page, '!tool calculator {"expression": "1/0"}');
      const failed = page.locator("[data-testid=tool-card][data-state=failed]");
      await answers(page, "calculator failed with INVALID_INPUT: Division by zero", false).waitFor();
      await failed.locator("summary").click();
      await failed.getByText("Division by zero has no value. INVALID_INPUT").waitFor();
      await page.getByText("1 tool call failed").waitFor();
    });

    it("says that a turn waits for the client that runs its tool, also after a reload, until it has answered", async () => {
      const page = await visit();
      const client = createClient({ baseUrl: start.url });
      const { id } = await client.conversations.create({ agentId: "assistant" });
      await page.goto(`${start.url}/c/${id}`);
      const tools = [{ name: "ask_user", description: "Asks.", inputSchema: { type: "object" } }];
      const { turnId } = await client.turns.start(id, { content: "!tool ask_user {}", tools });
      const card = page.locator("[data-testid=tool-card][data-tool=ask_user][data-state=waiting]");
      await card.getByText("Waiting for the client").waitFor();
      await page.reload();
      await card.getByText("Waiting for the client").waitFor();
      await page
        .getByTestId("client-notice")
        .getByText("The program that sent this message runs ask_user")
        .waitFor();

      const { moves } = await client.turns.get(id, turnId);
      const [operationId = ""] = moves.flatMap(({ toolCall }) => toolCall?.operationId ?? []);
      await client.operations.submit(id, operationId, { result: "At eight." });
      await answers(page, "ask_user answered At eight.", false).waitFor();
      expect(await page.getByTestId("client-notice").count()).toBe(0);
    });

    it("continues an answer after a reload in the middle of it", async () => {
      const page = await visit();
      await say(page, "!slow 150 30");
      await answers(page, "word-20 ", true).waitFor();
      await page.reload();
      await answers(page, "word-20 ", true).waitFor();
      await answers(page, "word-150", false).waitFor();
      const texts = await shownTexts(page);
      expect(texts.length).toBeGreaterThan(10);
      expect(texts.filter((text) => !words(150).startsWith(text))).toEqual([]);
      expect(texts.at(-1)).toBe(words(150));
      expect(await page.getByTestId("message-agent").count()).toBe(1);
      expect(await page.getByTestId("message-user").count()).toBe(1);
    });

    it("G18 stops an answer with a button or with Escape; the text stays, marked, and can be retried", async () => {
      const page = await visit();
      const stops: (() => void)[] = [];
      await page.routeWebSocket("**/agents/conversation/**", (socket) => {
        const server = socket.connectToServer();
        socket.onMessage((message) => {
          if (String(message).includes("turn.cancel")) stops.push(() => server.send(message));
          else server.send(message);
        });
      });
      await say(page, "!slow 400 30");
      await answers(page, "word-5 ", true).waitFor();
      const [stop, send, composer] = ["stop", "send", "composer"].map((id) => page.getByTestId(id));
      if (stop === undefined || send === undefined || composer === undefined) throw new Error("Missing.");
      expect(await send.count()).toBe(0);
      await composer.fill("And then?");
      expect([await send.isEnabled(), await stop.isEnabled()]).toEqual([true, true]);
      await composer.fill("");

      await stop.click();
      await page.getByText("Stopping…", { exact: true }).waitFor();
      expect([await stop.isDisabled(), await stop.getAttribute("aria-label")]).toEqual([true, "Stopping…"]);
      await page.locator("textarea:focus").press("Escape");
      expect(stops, "it is requested once").toHaveLength(1);
      stops.splice(0).forEach((release) => void release());
      const marks = page.getByTestId("turn-stopped");
      await page
        .locator("[aria-live=polite]")
        .filter({ has: marks.getByText("Stopped") })
        .waitFor();
      const shown = await answers(page, "word-5 ", false).textContent();
      expect(words(400).startsWith(shown ?? "?")).toBe(true);
      expect([await stop.count(), await page.getByTestId("turn-error").count()]).toEqual([0, 0]);

      await marks.getByRole("button", { name: "Try again" }).click();
      await answers(page, "word-3 ", true).waitFor();
      await composer.press("Escape");
      await expect.poll(() => stops.length).toBe(1);
      stops.splice(0).forEach((release) => void release());
      await marks.nth(1).waitFor();
      const before = await page.locator("[data-turn]").allTextContents();
      await page.reload();
      await marks.nth(1).waitFor();
      expect(await page.locator("[data-turn]").allTextContents()).toEqual(before);
      expect(await page.getByTestId("message-user").allTextContents()).toEqual([
        "!slow 400 30",
        "!slow 400 30",
      ]);
    });

    it("G18 shows that a conversation is stopped, and takes messages when it has resumed", async () => {
      const page = await visit();
      const client = createClient({ baseUrl: start.url });
      const { id } = await client.conversations.create({ agentId: "assistant" });
      await page.goto(`${start.url}/c/${id}`);
      const composer = page.getByTestId("composer");
      await composer.fill("!say Back.");
      await client.conversations.cancel(id);
      await page.getByRole("status").getByText("This conversation is stopped.").waitFor();
      expect(await composer.isDisabled()).toBe(true);
      await page.getByTestId("resume").click();
      await page.locator("textarea:focus").press("Enter");
      await answers(page, "Back.", false).waitFor();
      expect(await page.getByTestId("resume").count()).toBe(0);
    });

    it("G18 answers one after another if set by keyboard, shows queued messages, and stops one message alone", async () => {
      const page = await visit();
      const client = createClient({ baseUrl: start.url });
      const { id } = await client.conversations.create({ agentId: "assistant" });
      await page.goto(`${start.url}/c/${id}`);
      await page.getByTestId("settings").press("Enter");
      await page.getByRole("radio", { name: "At the same time" }).press("ArrowDown");
      await page.keyboard.press("Escape");
      await expect.poll(async () => (await client.conversations.get(id)).turns).toBe("queued");

      await say(page, "!slow 400 30");
      await answers(page, "word-3 ", true).waitFor();
      await say(page, "!say Second.");
      await say(page, "!say Third.");
      const turns = page.locator("[data-turn]");
      const waits = page.getByTestId("queued");
      await waits.nth(1).waitFor();
      expect(await waits.allTextContents()).toEqual([
        "Waits for 1 turn before it",
        "Waits for 2 turns before it",
      ]);
      await turns.nth(1).getByRole("button", { name: "Stop this message" }).click();
      await turns.nth(1).getByText("Stopped", { exact: true }).waitFor();
      expect(await waits.allTextContents()).toEqual(["Waits for 1 turn before it"]);
      await turns.nth(0).getByRole("button", { name: "Stop this answer" }).click();
      await answers(page, "Third.", false).waitFor();

      await say(page, "!slow 300 30");
      await say(page, "!say Fifth.");
      await waits.first().waitFor();
      await page.getByTestId("composer").press("Escape");
      await page.getByTestId("turn-stopped").nth(3).waitFor();
      const last = (await turns.last().getAttribute("data-turn")) ?? "";
      expect((await client.turns.get(id, last)).calls, "a turn that waits does not begin").toEqual([]);
    });

    it("shows a conversation live in two tabs that speak at once", async () => {
      const first = await visit();
      await say(first, "What is 1+1?");
      await answers(first, "answered 2", false).waitFor();
      const second = await visitor.open(new URL(first.url()).pathname);
      await answers(second, "answered 2", false).waitFor();

      const tabs = [first, second];
      await Promise.all([say(first, "!slow 61 30"), say(second, "!slow 62 30")]);
      for (const tab of tabs) {
        await tab.getByTestId("message-user").getByText("!slow 61").waitFor();
        await tab.getByTestId("message-user").getByText("!slow 62").waitFor();
        await answers(tab, "word-3", true).first().waitFor();
      }
      const transcripts = await Promise.all(
        tabs.map(async (tab) => {
          await answers(tab, "word-61", false).nth(1).waitFor();
          return tab.locator("[data-testid^=message-]").allTextContents();
        }),
      );
      expect(transcripts[0]).toEqual(transcripts[1]);
      expect(transcripts[0]?.slice(2).sort()).toEqual(["!slow 61 30", "!slow 62 30", words(61), words(62)]);
    });

    it("renders Markdown without active content", async () => {
      const page = await visit();
      await say(
        page,
        "!say # Title\n\nSome **bold** text, `code`, a [good link](https://example.com/) and a [bad one](javascript:alert(1)).\n\n" +
          '<img src=x onerror="alert(2)"> <script>alert(3)</script>\n\n<iframe src="javascript:alert(4)"></iframe>\n\n' +
          "- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```js\nalert(5)\n```\n\n![a picture](https://example.com/p.png)\n\nEnd.",
      );
      const answer = answers(page, "End.", false);
      await answer.waitFor();
      for (const tag of ["h1", "strong", "li", "table", "pre"]) {
        expect(await answer.locator(tag).count(), tag).toBeGreaterThan(0);
      }
      expect(await answer.locator("img, script, iframe").count()).toBe(0);
      await answer.getByText('<img src=x onerror="alert(2)">').waitFor();
      const links = await answer
        .locator("a")
        .evaluateAll((all) => all.map((link) => [link.textContent, link.getAttribute("href")]));
      expect(links).toEqual([
        ["good link", "https://example.com/"],
        ["a picture", "https://example.com/p.png"],
      ]);
      expect(await answer.getByRole("link", { name: "good link" }).getAttribute("rel")).toContain("noopener");
      await answer.getByText("bad one").click();
      expect(await page.getByTestId("message-user").locator("img, script, iframe, a").count()).toBe(0);
    });

    it("PAGE-1 works under its policy, which stops scripts in the page, foreign servers and frames", async () => {
      const page = await visit();
      await say(page, "!say | a | b |\n| :-: | --: |\n| 1 | 2 |");
      await page.locator("td").getByText("2").waitFor();
      expect(visitor.complaints).toEqual([]);

      const blocked = await page.evaluate<string[]>(`new Promise((resolve) => {
        const found = new Set();
        addEventListener("securitypolicyviolation", ({ effectiveDirective }) => {
          found.add(effectiveDirective);
          if (found.size === 5) resolve([...found].sort());
        });
        const append = (name, fields) => document.body.append(Object.assign(document.createElement(name), fields));
        append("img", { src: "http://127.0.0.2:9/x.png" });
        append("iframe", { src: "/docs" });
        append("style", { textContent: "body { display: none }" });
        fetch("http://127.0.0.2:9/").catch(() => {});
        try { append("script", { src: "/assets/x.js" }); } catch {}
      })`);
      expect(blocked).toEqual(
        ["connect-src", "frame-src", "img-src", "require-trusted-types-for", "style-src-elem"].sort(),
      );
      expect(await page.getByTestId("composer").isVisible()).toBe(true);
      visitor.complaints.length = 0;
    });

    it("is used by keyboard: Enter sends, Shift+Enter begins a line, blank text is not sent", async () => {
      const page = await open();
      const composer = page.getByTestId("composer");
      await page.getByTestId("agent-picker").waitFor();
      await page.locator("textarea:focus").waitFor();
      await page.keyboard.press("Enter");
      await page.keyboard.type("!say one");
      await page.keyboard.press("Shift+Enter");
      await page.keyboard.type("two");
      expect(await composer.inputValue()).toBe("!say one\ntwo");
      await page.keyboard.press("Enter");
      await answers(page, /^one\ntwo$/, false).waitFor();
      expect(await page.getByTestId("message-user").textContent()).toBe("!say one\ntwo");
      expect(await composer.inputValue()).toBe("");
      await page.locator("textarea:focus").waitFor();
      await page.keyboard.type("   ");
      expect(await page.getByTestId("send").isDisabled()).toBe(true);
      await page.keyboard.press("Enter");
      await say(page, "!say three");
      await answers(page, "three", false).waitFor();
      expect(await page.getByTestId("message-user").count()).toBe(2);
    });

    it("fits a small screen, in light and in dark", async () => {
      const page = await visit({
        viewport: { width: 360, height: 740 },
        isMobile: true,
        hasTouch: true,
        colorScheme: "dark",
      });
      await page.getByTestId("agent-picker").waitFor();
      expect(await sidewaysScrollers(page)).toEqual([]);
      const wide = "x".repeat(300);
      await say(
        page,
        `!say ${wide}\n\n| a | b | c |\n|---|---|---|\n| ${wide} | 2 | 3 |\n\n    ${wide}\n\nhttps://example.com/${wide}`,
      );
      await answers(page, "example.com", false).waitFor();
      await say(page, `!tool calculator {"expression": "${wide}"}`);
      await answers(page, "failed with", false).waitFor();
      await page.getByTestId("tool-card").locator("summary").tap();
      expect(await page.getByTestId("message-agent").count()).toBe(2);
      expect(await sidewaysScrollers(page)).toEqual([]);

      await page.getByRole("button", { name: "Menu" }).tap();
      await page.getByRole("dialog").getByTestId("conversation-item").first().waitFor();
      expect(await sidewaysScrollers(page)).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });

      expect(await textBrightness(page)).toBeGreaterThan(150);
      await page.emulateMedia({ colorScheme: "light" });
      expect(await textBrightness(page)).toBeLessThan(-150);
    });

    it("H1 an answer restarts after its process is killed, and is never shown twice", async () => {
      const page = await visit();
      await say(page, "!slow 100 30");
      await answers(page, "word-20 ", true).waitFor();
      const [worker] = processTree(start.npm.pid ?? 0).filter((process) => runsTheWorker(process, start.url));
      expect(worker).toBeDefined();
      process.kill(worker?.pid ?? 0, "SIGKILL");
      await page.locator("[data-testid=connection]:not([data-state=open])").waitFor();
      await say(page, "!say And then?");
      await answers(page, "word-100", false).waitFor();
      await answers(page, "And then?", false).waitFor();
      const texts = await shownTexts(page);
      expect(
        texts.filter((text) => ![words(100), "And then?"].some((whole) => whole.startsWith(text))),
      ).toEqual([]);
      const last = await page.getByTestId("message-agent").allTextContents();
      expect(last).toEqual([words(100), "And then?"]);
      await page.locator("[data-testid=connection][data-state=open]").waitFor();
      // The browser itself reports the lost connection.
      const others = visitor.complaints.filter((text) => !text.includes("WebSocket"));
      visitor.complaints.splice(0, Number.POSITIVE_INFINITY, ...others);
    });
  });

  describe("the console with a model that fails", () => {
    let model: OpenAIServer;

    beforeAll(async () => {
      await start.stop();
      model = await startOpenAIServer({ aside: nothingLearned });
      start = await npmStart(join(folder, "failing"), { OPENAI_BASE_URL: model.baseUrl });
    });

    afterAll(() => model.close());

    it("shows the error, immediately if a retry cannot help", async () => {
      const page = await visit();
      model.reply(errorReply(401, { message: "Incorrect key." }));
      await say(page, "Hello");
      const error = page.getByTestId("turn-error");
      await error.waitFor();
      expect(await error.textContent()).toContain("Incorrect key.");
      expect(await error.getByRole("button").count()).toBe(0);
      expect(model.requests).toHaveLength(1);
    });

    it("shows retries and the failure after them, and retries on request", async () => {
      const page = await visit();
      const before = model.requests.length;
      const overloaded = errorReply(500, { message: "Overloaded." });
      model.reply(overloaded, overloaded, overloaded);
      await say(page, "Hello");
      await page.getByTestId("retry-notice").getByText("Overloaded.").waitFor();
      const error = page.getByTestId("turn-error");
      await error.getByText("Overloaded.").waitFor();
      expect(model.requests).toHaveLength(before + 3);
      model.reply(textReply("Here I ", "am."));
      await error.getByRole("button", { name: "Try again" }).click();
      await answers(page, "Here I am.", false).waitFor();
      expect(await page.getByTestId("message-user").allTextContents()).toEqual(["Hello", "Hello"]);
    });

    it("offers a retry only for its own messages: another client may have requested data", async () => {
      const overloaded = errorReply(500, { message: "Overloaded." });
      model.reply(overloaded, overloaded, overloaded);
      const client = createClient({ baseUrl: start.url });
      const { id } = await client.conversations.create({ agentId: "assistant" });
      const output = { name: "author", schema: { type: "object" } };
      for await (const _ of client.streamTurn(id, { content: "Who wrote Faust?", output }));
      const page = await visit();
      await page.goto(`${start.url}/c/${id}`);
      const error = page.getByTestId("turn-error");
      await error.getByText("Overloaded.").waitFor();
      expect(await error.getByRole("button").count()).toBe(0);
    });

    it("lists a conversation of another client by its first message, with a time", async () => {
      const client = createClient({ baseUrl: start.url });
      const { id, createdAt } = await client.conversations.create({ agentId: "assistant" });
      model.reply(textReply("Goethe."));
      for await (const _ of client.streamTurn(id, { content: "Who wrote Egmont?" }));
      const page = await visit();
      await page.goto(`${start.url}/c/${id}`);
      const item = page.getByTestId("conversation-item").filter({ hasText: "Who wrote Egmont?" });
      await item.waitFor();
      const at = (await item.locator("time").getAttribute("datetime")) ?? "";
      expect(Date.parse(at)).toBeGreaterThanOrEqual(Date.parse(createdAt));
      await expect.poll(() => page.title()).toContain("Who wrote Egmont?");
    });

    it("G12 sends an image with the first message, and shows it again after a reload", async () => {
      const dot = Buffer.from(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "base64",
      );
      const page = await visit();
      await page.getByTestId("agent-picker").getByText("Assistant", { exact: true }).click();
      const notes = Buffer.from("not for sending");
      await page.getByTestId("files").setInputFiles([
        { name: "dot.png", mimeType: "image/png", buffer: dot },
        { name: "notes.txt", mimeType: "text/plain", buffer: notes },
      ]);
      await page.getByLabel("Remove notes.txt").click();
      const before = model.requests.length;
      model.reply(textReply("A dot."));
      await say(page, "What is this?");
      await page.waitForURL("**/c/conv_*");
      const image = page.getByRole("img", { name: "dot.png" });
      const width = () => image.evaluate((element) => Reflect.get(element, "naturalWidth"));
      await expect.poll(width).toBe(1);
      await answers(page, "A dot.", false).waitFor();
      const { body } = model.requests[before] ?? {};
      expect(JSON.stringify(body)).toContain(dot.toString("base64"));
      expect(JSON.stringify(body)).not.toContain("notes.txt");
      await page.reload();
      await expect.poll(width).toBe(1);
    });

    it("takes back the text of an attempt that broke off", async () => {
      const page = await visit();
      model.reply(
        { kind: "stream", steps: [{ text: "Half an " }, { delayMs: 100 }, { cut: true }] },
        textReply("A whole ", "answer."),
      );
      await say(page, "Hello");
      await answers(page, "A whole answer.", false).waitFor();
      await page.getByText("Answered after 1 retry").waitFor();
      expect(await page.getByTestId("message-agent").allTextContents()).toEqual(["A whole answer."]);
      const texts = await shownTexts(page);
      expect(
        texts.filter((text) => !"Half an ".startsWith(text.trim()) && !"A whole answer.".startsWith(text)),
      ).toEqual([]);
    });
  });
} else {
  console.warn(NO_CHROMIUM);

  beforeAll(async () => {
    start = await npmStart(join(folder, "offline"));
  });

  it(`the console is served (${NO_CHROMIUM})`, async () => {
    const page = await fetch(start.url);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toContain("text/html");
    const html = await page.text();
    expect(html).toContain('<div id="root">');
    const [, script] = /<script type="module"[^>]* src="([^"]+)"/.exec(html) ?? [];
    const code = await fetch(new URL(script ?? "/missing", start.url));
    expect(code.headers.get("content-type")).toContain("javascript");
  });
}
