/**
 * Conversations in the console, in a real browser: requests for approval in the inbox and the chat; the list with rename, pin, archive,
 * forks and order; copy, colours of code, edit, drafts, search and shortcuts.
 */
import type { BrowserContextOptions, Locator, Page } from "playwright-core";
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

/** Checks that an element is completely on the screen. */
async function expectOnScreen(page: Page, element: Locator): Promise<void> {
  const { x, y, width, height } = (await element.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
  const screen = page.viewportSize() ?? { width: 0, height: 0 };
  expect(Math.min(x, y)).toBeGreaterThanOrEqual(0);
  expect([x + width <= screen.width, y + height <= screen.height]).toEqual([true, true]);
}

const PAYOUT = '!tool pay_out {"amount": 125000.5, "currency": "EUR", "due": "2031-03-04"}';
const CODE = `export const greeting = "Hello"; // ${"a long comment ".repeat(12)}`;

describe.runIf(hasChromium)(
  `conversations in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`,
  () => {
    const world = workConsole();

    describe("requests in sight", () => {
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
        await page.setViewportSize({ width: 390, height: 800 });
        await page.getByRole("button", { name: "Menu, 2 requests wait" }).click();
        await page.getByRole("dialog").getByTestId("inbox-badge").waitFor();
        await page.keyboard.press("Escape");
        await page.setViewportSize({ width: 1440, height: 800 });
        const item = (text: string) => page.getByTestId("inbox-item").filter({ hasText: text });
        await item("Refund the order Z9?").waitFor();
        await page.getByTestId("inbox-badge").getByText("2").waitFor();
        const row = (text: string) => item(text).locator("button[aria-expanded]");
        expect(await row("rent").textContent()).toMatch(
          /^transferClerk · \{.*"item":"rent"\}.*(now|\d min)$/,
        );
        expect(await row("Refund").textContent()).toMatch(
          /^Refund the order Z9\?work\/refunds@1 · Z9.*(now|\d min)$/,
        );
        expect(await row("Refund").getAttribute("aria-expanded"), "the first request is open").toBe("true");
        await item("Refund").getByText("Step: ask").waitFor();
        const question = item("Refund").locator("[data-question]");
        expect(await question.evaluate(({ clientWidth }) => clientWidth), "the question stands once").toBe(1);
        await row("rent").press("Enter");
        expect(await row("Refund").getAttribute("aria-expanded"), "one request is open").toBe("false");
        const link = (text: string) => item(text).getByRole("link").getAttribute("href");
        expect((await link("rent"))?.replace(/#.*/, "")).toBe(place);
        await row("Refund").press("Enter");
        expect(await link("Refund")).toBe(`/runs/${run.id}`);
        await item("Refund the order Z9?").getByRole("button", { name: "Deny" }).click();
        await page.getByTestId("inbox-note").getByText("Denied.").waitFor();
        await page.getByTestId("inbox-badge").getByText("1").waitFor();
        expect(await row("rent").getAttribute("aria-expanded"), "the next request opens").toBe("true");
        await item("rent").getByRole("button", { name: "Approve" }).click();
        await page.getByText("Nothing waits for you.").waitFor();
        await expect.poll(() => world.desk.bodiesOf("/now/inbox")).toEqual(["rent"]);
        expect(await page.getByTestId("inbox-badge").count()).toBe(0);
      });
    });

    describe("the list of conversations", () => {
      async function talk(text: string): Promise<string> {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        for await (const _ of world.client.streamTurn(id, { content: `!say ${text}` }));
        return id;
      }

      it("G24 TITLE-6 the title that a model writes replaces the beginning of the message, live and after a reload", async () => {
        const { id } = await world.client.conversations.create({ agentId: "titler" });
        world.visitor = new Visitor(world.browser, world.server.url);
        const page = await world.visitor.open(`/c/${id}`);
        await say(page, "Please plan my trip to Vienna. There are two of us.");
        const heading = page.getByRole("heading", { name: "Plan my trip to Vienna", exact: true });
        await heading.waitFor();
        await page
          .getByTestId("conversation-item")
          .filter({ hasText: /^Plan my trip to Vienna/ })
          .waitFor();
        await page.reload();
        await heading.waitFor();
      });

      for (const width of [390, 1440]) {
        it(`G24 TITLE-1 TITLE-4 DIR-13 renames, pins, archives and shows forks at ${width} px`, async () => {
          const first = await talk(`First ${width}`);
          await talk(`Second ${width}`);
          const fork = await world.client.conversations.fork(first);
          world.visitor = new Visitor(world.browser, world.server.url, { viewport: { width, height: 800 } });
          const page = await world.visitor.open(`/c/${first}`);
          /** Shows the list, which small screens have in a drawer. */
          const withList = async (work: (list: Page) => Promise<void>) => {
            if (width < 768) await page.getByRole("button", { name: /^Menu/ }).click();
            await work(page);
            if (width < 768) await page.keyboard.press("Escape");
          };
          const items = () => page.getByTestId("conversation-item").allTextContents();
          const indexOf = async (text: string) => (await items()).findIndex((one) => one.includes(text));
          const menu = async (work: () => Promise<void>) => {
            await page.getByTestId("settings").click();
            await work();
            expect(await sidewaysScrollers(page)).toEqual([]);
            await page.keyboard.press("Escape");
          };

          await page.getByRole("heading", { name: `!say First ${width}` }).waitFor();
          await withList(async () => {
            await expect.poll(() => indexOf(`Second ${width}`)).toBeGreaterThanOrEqual(0);
            expect((await items()).find((one) => one.includes(`Fork of !say First ${width}`))).toContain(
              "· Fork",
            );
          });

          await menu(async () => {
            await page.getByTestId("title").fill(`Renamed ${width}`);
            await page.getByRole("button", { name: "Rename", exact: true }).click();
            await page.getByRole("heading", { name: `Renamed ${width}` }).waitFor();
            await page.getByTestId("pin").click();
            await page.getByRole("button", { name: "Unpin" }).waitFor();
          });
          await withList(() => expect.poll(() => indexOf(`Renamed ${width}`)).toBe(0));
          await withList(() =>
            page.getByTestId("conversation-item").first().getByRole("img", { name: "Pinned" }).waitFor(),
          );

          await menu(async () => {
            await page.getByTestId("pin").click();
            await page.getByRole("button", { name: "Pin", exact: true }).waitFor();
            await page.getByTestId("archive").click();
            await page.getByRole("button", { name: "Remove from archive" }).waitFor();
          });
          await withList(async () => {
            await expect.poll(() => indexOf(`Renamed ${width}`)).toBe(-1);
            await page.getByTestId("toggle-archive").click();
            await expect.poll(() => indexOf(`Renamed ${width}`)).toBe(0);
            await page.getByTestId("toggle-archive").click();
          });
          await menu(async () => {
            await page.getByTestId("archive").click();
            await page.getByRole("button", { name: "Archive", exact: true }).waitFor();
          });
          await withList(() => expect.poll(() => indexOf(`Renamed ${width}`)).toBeGreaterThanOrEqual(0));

          await page.goto(`${world.server.url}/c/${fork.id}`);
          await page.getByRole("heading", { name: `Fork of !say First ${width}` }).waitFor();
          await page.getByTestId("original").click();
          await page.waitForURL(`**/c/${first}`);
        });
      }
    });

    describe("a chat in the console", () => {
      const visit = (path: string, options?: BrowserContextOptions): Promise<Page> => {
        world.visitor = new Visitor(world.browser, world.server.url, options);
        return world.visitor.open(path);
      };

      it("I9 copies, colours code, edits, answers again, forks, and keeps drafts, on a phone", async () => {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        const page = await visit(`/c/${id}`, {
          viewport: { width: 390, height: 844 },
          permissions: ["clipboard-read", "clipboard-write"],
        });
        const copied = () => page.evaluate<string>("navigator.clipboard.readText()");
        const draft = () => page.getByTestId("composer").inputValue();
        await say(page, `!say Look:\n\`\`\`ts\n${CODE}\n\`\`\``);
        const block = page.getByTestId("message-agent").getByTestId("code");
        await block.locator(".code-kwd").getByText("export").waitFor();
        expect(await block.locator("pre").textContent()).toBe(CODE);
        expect(
          await block.evaluate((element) => Reflect.get(element.querySelector("pre") ?? {}, "scrollWidth")),
        ).toBeGreaterThan(390);
        expect(await sidewaysScrollers(page)).toEqual([]);
        await block.getByTestId("copy").click();
        await block.getByText("Copied").waitFor();
        expect(await copied()).toBe(CODE);
        await page.getByRole("button", { name: "Copy this answer" }).click();
        await expect.poll(copied).toBe(`Look:\n\`\`\`ts\n${CODE}\n\`\`\``);

        await page.getByTestId("composer").fill("Half a thought");
        await page.reload();
        await expect.poll(draft).toBe("Half a thought");
        await page.goto(`${world.server.url}/a/clerk`);
        await page.goBack();
        await expect.poll(draft).toBe("Half a thought");
        await page.getByTestId("composer").fill("");

        await page.getByTestId("edit").click();
        await page.getByLabel("Edit message").fill("!say Shorter.");
        await page.keyboard.press("Enter");
        await answers(page, "Shorter.", false).waitFor();
        await page.getByTestId("versions").getByText("2/2").waitFor();
        await page.getByTestId("answer-again").click();
        await page.getByTestId("versions").getByText("3/3").waitFor();
        await answers(page, "Shorter.", false).last().waitFor();
        await page.getByTestId("turn-menu").last().click();
        await page.getByTestId("fork").last().click();
        await page.waitForURL((url) => url.pathname.startsWith("/c/") && !url.pathname.includes(id));
        await page.getByTestId("original").waitFor();
        await answers(page, "Shorter.", false).last().waitFor();
      });

      it("I9 has rare actions in menus and icons with names, and nothing overlaps at 390 px", async () => {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        const page = await visit(`/c/${id}`, { viewport: { width: 390, height: 700 } });
        await say(page, `!say ${"A long answer. ".repeat(80)}`);
        await answers(page, "A long answer.", false).waitFor();
        const turn = page.locator("[data-turn]");
        for (const name of ["Edit this message", "Copy this answer", "Answer again", "Trace of this answer"])
          await turn.getByRole("button", { name }).waitFor();
        expect(
          await turn
            .getByText(/Erase|Fork|Inspect/)
            .filter({ visible: true })
            .count(),
        ).toBe(0);
        const buttons = await turn.getByRole("button").all();
        const found = await Promise.all(buttons.map((one) => one.boundingBox()));
        const boxes = found.filter((box) => box !== null);
        for (const [index, { x, y, width, height }] of boxes.entries()) {
          expect(Math.min(width, height)).toBeGreaterThanOrEqual(24);
          const overlaps = boxes
            .slice(index + 1)
            .filter((one) => one.x < x + width && x < one.x + one.width)
            .filter((one) => one.y < y + height && y < one.y + one.height);
          expect(overlaps).toEqual([]);
        }
        for (const [button, item] of [
          ["turn-menu", "open-erase"],
          ["settings", "delete-conversation"],
        ] as const) {
          await page.getByTestId(button).click();
          const menu = page.locator("[popover]:popover-open");
          await menu.getByTestId(item).waitFor();
          await expectOnScreen(page, menu);
          expect(await violations(page)).toEqual([]);
          expect(await sidewaysScrollers(page)).toEqual([]);
          await page.keyboard.press("Escape");
          expect(await page.locator(`[data-testid=${button}]:focus`).count(), "the focus returns").toBe(1);
        }
      });

      it("I15 a conversation of a channel shows its channel, in the list and at the top", async () => {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        const letter = { method: "POST", body: "!say By letter." };
        expect((await fetch(`${world.server.url}/api/channels/letterbox`, letter)).status).toBe(200);
        const page = await visit("/");
        const item = page.getByTestId("conversation-item").filter({ hasText: "!say By letter." });
        await item.getByTestId("channel").getByText("Letterbox").waitFor();
        await item.click();
        await answers(page, "By letter.", false).waitFor();
        await page.locator("header").getByTestId("channel").getByText("Letterbox").waitFor();
        expect(await violations(page)).toEqual([]);
        await page.goto(`${world.server.url}/c/${id}`);
        await page.getByTestId("composer").waitFor();
        expect(await page.locator("header").getByTestId("channel").count()).toBe(0);
      });

      it("I9 a conversation that does not load yet has a heading", async () => {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        const page = await visit("/");
        await page.routeWebSocket("**/agents/conversation/**", () => undefined);
        await page.goto(new URL(`/c/${id}`, page.url()).href);
        await page.getByRole("heading", { name: "Conversation", exact: true }).waitFor();
        expect(await violations(page)).toEqual([]);
      });

      it("I9 an error wraps, leaves the composer on the screen, and can be hidden, at 390 px", async () => {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        const page = await visit(`/c/${id}`, { viewport: { width: 390, height: 700 } });
        const banner = page.getByTestId("offline-banner");
        expect((await banner.getByRole("paragraph").boundingBox())?.height).toBeLessThanOrEqual(40);
        await page.route("**/attachments*", (route) =>
          route.fulfill({
            status: 413,
            contentType: "application/problem+json",
            json: {
              code: "TOO_LARGE",
              status: 413,
              title: "Too large",
              detail: `${"word ".repeat(300)}${"x".repeat(400)}`,
            },
          }),
        );
        const composer = page.getByTestId("composer");
        await page
          .getByTestId("files")
          .setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
        await say(page, "Read this file");
        const alert = page.getByRole("alert");
        await alert.getByText("xxxx").waitFor();
        await expectOnScreen(page, composer);
        await expectOnScreen(page, page.getByTestId("send"));
        expect(await sidewaysScrollers(page)).toEqual([]);
        expect(await violations(page)).toEqual([]);
        await alert.getByRole("button", { name: "Hide this error" }).click();
        await expect.poll(() => alert.count()).toBe(0);
        expect(await composer.inputValue(), "the message is back").toBe("Read this file");
        await banner.getByRole("button", { name: "Hide this note" }).click();
        await page.reload();
        await composer.waitFor();
        expect(await banner.count()).toBe(0);
        expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("413")]);
      });

      it("I9 finds conversations, groups them by day, and is used by shortcuts, which a list explains", async () => {
        const { id } = await world.client.conversations.create({
          agentId: "clerk",
          title: "Lamps for the hall",
        });
        const other = await world.client.conversations.create({ agentId: "porter", title: "Ropes" });
        const page = await visit(`/c/${id}`, { viewport: { width: 1440, height: 900 } });
        const items = page.getByTestId("conversation-item");
        await page.getByRole("region", { name: "Today" }).getByText("Lamps for the hall").waitFor();
        await items.filter({ hasText: "Ropes" }).waitFor();
        await page.keyboard.press("Control+k");
        await page.keyboard.type("lamps");
        await expect.poll(() => items.count()).toBe(1);
        await page.keyboard.press("Enter");
        await page.waitForURL("**/turns?text=lamps");
        await page.keyboard.press("Control+Shift+O");
        await page.waitForURL(`${world.server.url}/`);
        await page.goto(`${world.server.url}/c/${other.id}`);
        await page.getByTestId("composer").waitFor();
        await page.locator("h1").click();
        await page.evaluate("document.activeElement.blur()");
        await page.keyboard.press("/");
        expect(await page.evaluate("document.activeElement.dataset.testid")).toBe("composer");
        await page.keyboard.type("? is a letter here");
        expect(await page.getByTestId("shortcuts").count()).toBe(0);
        await page.evaluate("document.activeElement.blur()");
        await page.keyboard.press("?");
        await page.getByTestId("shortcuts").getByText("Search conversations").waitFor();
        await page.keyboard.press("Escape");
        await expect.poll(() => page.getByTestId("shortcuts").count()).toBe(0);
      });

      it("I9 a composer that becomes ready does not take the keys of a person who types in the search", async () => {
        const page = await visit("/inbox", { viewport: { width: 1440, height: 900 } });
        const ready = Promise.withResolvers<void>();
        await page.route("**/api/agents*", async (route) => {
          await ready.promise;
          await route.continue();
        });
        await page.goto(`${world.server.url}/`);
        await page.getByTestId("search").click();
        await page.keyboard.type("lam");
        ready.resolve();
        await expect.poll(() => page.getByTestId("composer").isEnabled()).toBe(true);
        await page.keyboard.type("ps");
        expect(await page.getByTestId("search").inputValue()).toBe("lamps");
      });

      it("I9 an author makes an agent by keyboard, with an error at its field, and talks with it", async () => {
        const page = await visit("/a");
        const form = page.getByTestId("new-agent");
        await form.locator("summary").press("Enter");
        await form.getByLabel("Id").fill("Sea poet");
        await form.getByLabel("Name").fill("Poet");
        await form.getByLabel("Instructions").fill("You write about the sea.");
        await form.getByRole("button", { name: "Create agent" }).press("Enter");
        await form.locator('[aria-invalid=true][name="id"]').waitFor();
        expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("422")]);
        expect(await violations(page)).toEqual([]);
        await form.getByLabel("Id").fill("sea-poet");
        await form.getByLabel("Id").press("Enter");
        await page.waitForURL("**/a/sea-poet");
        await page.getByTestId("agent-setup").getByText("You write about the sea.").waitFor();
        await page.getByTestId("talk").click();
        expect(await page.getByRole("radio", { name: /Poet/ }).isChecked()).toBe(true);
      });

      it("I9 shows the setup of an agent, the libraries, and the triggers, which authors disable", async () => {
        const made = await fetch(`${world.server.url}/api/triggers`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            when: { cron: "30 6 * * *", timeZone: "Europe/Berlin" },
            starts: { workflow: "work/refunds", input: { orders: [] } },
          }),
        });
        expect(made.status).toBe(201);
        const page = await visit("/a/clerk");
        const setup = page.getByTestId("agent-setup");
        await setup.getByText("You are a clerk.").waitFor();
        await setup.getByText("pay, research").waitFor();
        await page.getByTestId("talk").click();
        expect(await page.getByRole("radio", { name: /Clerk/ }).isChecked()).toBe(true);
        await page.getByTestId("libraries").click();
        await page.locator("[data-library=work] > summary").click();
        await page.getByText("payout_desk@1").click();
        await page.getByText('"initialNode": "desk"').waitFor();
        await page.getByTestId("triggers").click();
        const trigger = page.getByTestId("trigger");
        await trigger.getByText("At 06:30 (Europe/Berlin)").waitFor();
        await trigger.getByText("30 6 * * *").waitFor();
        await trigger.getByText("work/refunds").waitFor();
        await trigger.getByRole("button", { name: "Disable" }).click();
        await trigger.getByText("Disabled").waitFor();
      });
    });
  },
);
