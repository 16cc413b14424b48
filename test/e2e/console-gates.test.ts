/**
 * Questions of runs in the console: their forms, the persons who answered, late answers, and lost connections, in a
 * real browser.
 */
import type { BrowserContextOptions, Page, Request } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, NO_CHROMIUM, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { buildPage } from "../support/built-page.ts";
import { workConsole } from "../support/work-console.ts";

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

describe.runIf(hasChromium)(
  `questions of runs in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`,
  () => {
    const world = workConsole();

    const visit = (path: string, options?: BrowserContextOptions): Promise<Page> => {
      world.visitor = new Visitor(world.browser, world.server.url, options);
      return world.visitor.open(path);
    };

    async function start(workflow: string, input: Record<string, unknown>): Promise<string> {
      // SAFETY: the tests give JSON.
      const { id } = await world.client.runs.start({ workflow, input: input as Record<string, string> });
      return id;
    }

    const gates = (page: Page) => page.getByTestId("gate");
    const status = (page: Page, value: string) =>
      page.locator(`[data-testid=run-status][data-status=${value}]`);
    const focused = (page: Page) =>
      page.evaluate<string>("document.activeElement?.textContent?.slice(0, 60) ?? ''");

    it("links to the questions, takes a denial with its comment and an approval by keyboard, and shows who answered", async () => {
      const id = await start("work/refunds", { orders: ["A1", "B2"] });
      const page = await visit("/runs");
      const item = page.locator(`[data-testid=run-item][data-run=${id}]`);
      await item.getByText("Waiting").waitFor();
      await item.press("Enter");
      await page.waitForURL(`**/runs/${id}`);
      await expect.poll(() => page.title()).toBe("work/refunds@1 · Waiting · Dramatis");
      const banner = page.getByTestId("gates-banner");
      await banner.getByText("2 questions wait for your answer.").waitFor();
      await banner.getByRole("button", { name: "Show questions" }).press("Enter");
      expect(await focused(page)).toBe("Refund the order A1?");
      const first = page.getByRole("form", { name: "Refund the order A1?" });
      await first.getByText("Ask the shop").waitFor();
      await first.getByText('"order": "A1"').waitFor();
      await first.getByLabel("Comment").fill("Used already.");
      // Enter in the only field makes no decision.
      await first.getByRole("button", { name: "Deny" }).press("Enter");
      await first.waitFor({ state: "detached" });
      await page.getByTestId("gates-note").getByText("Denied.").waitFor();
      await banner.getByText("A question waits for your answer.").waitFor();
      expect(await page.evaluate("document.activeElement?.ariaLabel"), "the focus stays").toBe("Questions");
      await gates(page).getByRole("button", { name: "Approve" }).press("Enter");
      await status(page, "completed").waitFor();
      await expect.poll(() => gates(page).count()).toBe(0);
      expect(await banner.textContent()).toBe("");

      const node = page.locator("[data-testid=run-node][data-node=ask]");
      await node.press("Enter");
      const tokens = page.getByTestId("node-details").getByTestId("run-token");
      await tokens.first().locator("summary").press("Enter");
      expect(await tokens.first().getByTestId("answer").textContent()).toMatch(/^Denied by local, \d+:\d\d/);
      await tokens.first().getByText("Used already.").waitFor();
      await tokens.last().locator("summary").press("Enter");
      expect(await tokens.last().getByTestId("answer").textContent()).toMatch(/^Approved by local, /);
      await page.keyboard.press("Escape");
      await expect.poll(() => page.getByTestId("node-details").count(), { message: "Escape closes" }).toBe(0);
      expect(await page.evaluate("document.activeElement?.dataset.node"), "and returns the focus").toBe(
        "ask",
      );
    });

    it("takes an answer by a form of its schema, shows each error at its field, and reviews with changes, on a phone", async () => {
      const id = await start("work/letters", { name: "Ada", subject: `Bill ${"very-".repeat(30)}long` });
      const page = await visit(`/runs/${id}`, PHONE);
      const fits = async (name: string) => expect(await sidewaysScrollers(page), name).toEqual([]);
      await page.getByRole("button", { name: "Show question" }).tap();
      const form = page.getByRole("form", { name: "Where does Ada live?" });
      await fits("form");
      const send = form.getByRole("button", { name: "Send answer" });
      await send.tap();
      const field = (label: string | RegExp) => form.getByLabel(label);
      const errorOf = (label: string | RegExp) =>
        field(label).evaluate((element) =>
          [
            ...element.ownerDocument.querySelectorAll(
              `[id="${element.getAttribute("aria-describedby")?.split(" ").at(-1)}"]`,
            ),
          ]
            .map(({ textContent }) => textContent)
            .join(),
        );
      await expect.poll(() => errorOf("Zip")).toBe("Enter a value.");
      expect(await errorOf("Lift")).toBe("Enter a value.");
      expect(
        await field("Street").evaluate((element) => element === element.ownerDocument.activeElement),
      ).toBe(true);
      await field("Street").fill("Oak Road 1");
      await field("Zip").fill("123");
      await field("Floor").fill("two");
      await field("Lift").selectOption("No");
      await field("Kind").selectOption("office");
      await field("People").fill("[{");
      await send.tap();
      await expect.poll(() => errorOf("Floor")).toContain("Enter a number");
      expect(await errorOf("People")).toContain("This is not JSON");
      await field("Floor").fill("-1");
      await field("People").fill('[{"name": 1}]');
      await send.tap();
      await expect.poll(() => errorOf("Zip"), { message: "the server's errors" }).toContain("pattern");
      expect(await errorOf("Floor")).toContain("-1");
      expect(await errorOf("People")).toMatch(/^\/0\/name: /);
      await fits("errors");
      await field("Zip").fill("12345");
      await field("Floor").fill("2");
      await field("People").fill('[{"name": "Bob"}]');
      await send.tap();

      const review = page.getByRole("form", { name: "Send this letter?" });
      await review.waitFor();
      await fits("review");
      await review.getByLabel("Subject").fill("Bi");
      await review.getByRole("button", { name: "Approve" }).tap();
      await review.locator("[aria-invalid=true]").waitFor();
      await review.getByLabel("Subject").fill("Your bill");
      await review.getByLabel("Urgent").selectOption("Yes");
      await review.getByLabel("Comment").fill("Shorter.");
      await review.getByRole("button", { name: "Approve" }).tap();
      await status(page, "completed").waitFor();
      expect((await world.client.runs.get(id)).output).toEqual({
        address: {
          street: "Oak Road 1",
          zip: "12345",
          floor: 2,
          lift: false,
          kind: "office",
          people: [{ name: "Bob" }],
        },
        verdict: {
          approved: true,
          comment: "Shorter.",
          changes: { subject: "Your bill", urgent: true },
        },
      });
      expect(world.visitor.complaints.splice(0)).toEqual(Array(2).fill(expect.stringContaining("422")));
    });

    it("asks for more time, and shows the person that extended it", async () => {
      const id = await start("work/slow_errand", { url: world.desk.url("/slow") });
      const page = await visit(`/runs/${id}`);
      const question = page.getByRole("form", { name: /^The time limit of this run has passed/ });
      await question.getByText("The run", { exact: true }).waitFor();
      await question.getByRole("button", { name: "Approve" }).click();
      await page.getByTestId("run-facts").getByText("Approved by local").first().waitFor();
      await expect.poll(() => world.desk.answer("/slow/one", "tea")).toBe(true);
      await status(page, "completed").waitFor();
      await expect.poll(() => gates(page).count()).toBe(0);
    });

    it("reports that another person answered first, and keeps the typed text", async () => {
      const id = await start("work/refunds", { orders: ["A1", "B2"] });
      const page = await visit(`/runs/${id}`);
      const first = page.getByRole("form", { name: "Refund the order A1?" });
      await first.getByLabel("Comment").fill("Let us wait.");
      const [gate] = (await world.client.runs.get(id)).gates;
      await world.client.runs.answer(id, gate?.operationId ?? "", { approved: true });
      const lost = page.getByTestId("lost-draft");
      await lost.getByText("Approved by local: Refund the order A1? Your text was not sent.").waitFor();
      await lost.getByText("Let us wait.").waitFor();
      await first.waitFor({ state: "detached" });
      await lost.getByRole("button", { name: "Discard text" }).press("Enter");
      await lost.waitFor({ state: "detached" });

      // If another answer arrives first, this answer is refused.
      const second = page.getByRole("form", { name: "Refund the order B2?" });
      await page.route("**/gates/*", async (route) => {
        const [open] = (await world.client.runs.get(id)).gates;
        if (open !== undefined) await world.client.runs.answer(id, open.operationId, { approved: true });
        await route.continue();
      });
      await second.getByRole("button", { name: "Deny" }).press("Enter");
      await page
        .getByTestId("gates-note")
        .getByText("Your answer came too late and has no effect.")
        .waitFor();
      await status(page, "completed").waitFor();
      expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("409")]);
    });

    it("keeps the text while the server cannot be reached, and sends it with Try again", async () => {
      const id = await start("work/refunds", { orders: ["A1"] });
      const page = await visit(`/runs/${id}`);
      const question = page.getByRole("form", { name: "Refund the order A1?" });
      await question.getByLabel("Comment").fill("Fine.");
      // What the page loads later is there.
      await page.locator("[data-testid=run-node]").first().waitFor();
      await page.context().setOffline(true);
      await question.getByRole("button", { name: "Approve" }).press("Enter");
      await question.getByRole("alert").getByText("The server could not be reached.").waitFor();
      expect(await question.getByLabel("Comment").inputValue()).toBe("Fine.");
      await page.context().setOffline(false);
      await question.getByRole("button", { name: "Try again" }).press("Enter");
      await status(page, "completed").waitFor();
      await expect.poll(() => gates(page).count()).toBe(0);
      expect(world.visitor.complaints.splice(0)).toEqual([
        expect.stringContaining("ERR_INTERNET_DISCONNECTED"),
      ]);
    });

    it("asks although the graph could not be loaded, which Try again loads", async () => {
      const id = await start("work/refunds", { orders: ["A1"] });
      world.visitor = new Visitor(world.browser, world.server.url);
      const page = await world.visitor.open("/runs");
      await page.route("**/assets/run-graph-*", (route) => route.abort());
      await page.locator(`[data-testid=run-item][data-run=${id}]`).press("Enter");
      const note = page.getByRole("alert").filter({ hasText: "The graph could not be loaded." });
      await note.waitFor();
      await page.getByRole("form", { name: "Refund the order A1?" }).waitFor();
      expect(world.visitor.complaints.splice(0).join()).toContain("ERR_FAILED");
      await page.unroute("**/assets/run-graph-*");
      await note.getByRole("button", { name: "Try again" }).press("Enter");
      await page.locator("[data-testid=run-node]").first().waitFor();
    });

    it("I1 lists the persons who may answer, and disables the buttons of other persons", async () => {
      const id = await start("work/audit", {});
      const page = await visit(`/runs/${id}`);
      const question = page.getByRole("form", { name: "Close the books?" });
      await question
        .getByText("Only participants, except the requester, may answer. You cannot answer.")
        .waitFor();
      for (const name of ["Deny", "Approve"]) {
        const button = question.getByRole("button", { name });
        await expect.poll(() => button.getAttribute("aria-disabled")).toBe("true");
        await button.press("Enter");
      }
      // A press of a disabled button is ignored: the run still waits.
      expect((await world.client.runs.get(id)).status).toBe("waiting");
      expect(world.visitor.complaints).toEqual([]);
    });

    it("removes the question when the run is cancelled", async () => {
      const id = await start("work/refunds", { orders: ["A1"] });
      const page = await visit(`/runs/${id}`);
      await gates(page).waitFor();
      await world.client.runs.cancel(id);
      await status(page, "cancelled").waitFor();
      await expect.poll(() => gates(page).count()).toBe(0);
    });

    it("offers the workflows that exist, and names an agent that does not", async () => {
      const page = await visit("/runs");
      const form = page.getByTestId("start-run");
      await form.locator("summary").press("Enter");
      const suggestions = () => form.locator("select option").allTextContents();
      await expect.poll(suggestions).toContain("work/refunds");
      await form.getByText("Choose a workflow to see the fields of its input.").waitFor();
      await form.locator("select").selectOption("work/haunted");
      await form.getByRole("button", { name: "Start run" }).press("Enter");
      await page.waitForURL("**/runs/run_*");
      await status(page, "failed").waitFor();
      const node = page.locator("[data-testid=run-node][data-node=ask]");
      await node.press("Enter");
      await page
        .getByTestId("node-details")
        .getByText(/ghost.*NOT_FOUND/)
        .first()
        .waitFor();
    });

    describe("a page of an application with hooks, in StrictMode", () => {
      /** Opens a tab of the visitor, with all of its requests to the API. */
      async function tab(id: string): Promise<{ page: Page; requests: string[]; ended: string[] }> {
        const page = await world.visitor.open("about:blank");
        const [requests, ended]: [string[], string[]] = [[], []];
        page.on("request", (request) => requests.push(pathOf(request)));
        page.on("requestfailed", (request) => ended.push(pathOf(request)));
        await page.route("**/own-page*", async (route) =>
          route.fulfill({ contentType: "text/html", body: await ownPage }),
        );
        await page.goto(`${world.server.url}/own-page?id=${id}`);
        return { page, requests, ended };
      }

      const ownPage = buildPage("hooks", "development");
      const pathOf = (request: Request) =>
        `${request.method()} ${new URL(request.url()).pathname.replace(/(run|conv|op)_\w+/g, "$1")}`;
      const part = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
      const times = (requests: string[], path: string) => requests.filter((one) => one === path).length;

      /** A tab with the question of a new run. */
      async function waiting() {
        const order = `kept ${crypto.randomUUID()}`;
        const id = await start("work/refunds", { orders: [order] });
        world.visitor = new Visitor(world.browser, world.server.url);
        const opened = await tab(id);
        const { page } = opened;
        const press = (name: string) => page.getByRole("button", { name, exact: true }).click();
        const asked = () => part(page, "First").getByText(order).count();
        const isLive = async () => {
          await expect.poll(asked).toBe(1);
          await expect.poll(() => part(page, "Run").getAttribute("data-run")).toBe("waiting");
          await expect.poll(() => part(page, "Run").getAttribute("data-status")).toBe("open");
        };
        await isLive();
        return { ...opened, id, press, asked, isLive };
      }

      it("SHARE-1 SHARE-2 SHARE-3 shares requests, follows a run, and agrees with another tab about each answer", async () => {
        const id = await start("work/refunds", { orders: ["hook 1", "hook 2", "hook 3"] });
        await expect
          .poll(async () => (await world.client.approvals.list({ run: id })).approvals.length)
          .toBe(3);
        world.visitor = new Visitor(world.browser, world.server.url);
        const tabs = [await tab(id), await tab(id)] as const;
        for (const { page } of tabs) {
          for (const name of ["First", "Second"])
            await expect.poll(() => part(page, name).getByText(/hook/).count()).toBe(3);
          for (const name of ["Run", "Same run"]) {
            await expect.poll(() => part(page, name).getAttribute("data-run")).toBe("waiting");
            await expect.poll(() => part(page, name).getAttribute("data-status")).toBe("open");
          }
          await page.getByText("clerk | Clerk |  | !say Good morning.").waitFor();
          await page.getByText("porter | Porter | ", { exact: true }).waitFor();
          await expect
            .poll(() => part(page, "Wrong").getByRole("status").textContent())
            .toBe("INVALID_INPUT");
        }
        for (const { requests } of tabs)
          expect(requests.filter((one) => one.includes("/api/")).sort()).toEqual([
            "GET /api/agents",
            "GET /api/approvals",
            "GET /api/runs/run",
            "GET /api/runs/run/events",
          ]);

        const [one, two] = tabs;
        const first = part(one.page, "First").locator("p", { hasText: "hook 1" });
        await first.getByRole("button", { name: "Deny" }).click();
        for (const { page } of tabs)
          for (const name of ["First", "Second"])
            await expect.poll(() => part(page, name).getByText(/hook/).count()).toBe(2);
        await part(two.page, "Run")
          .getByRole("button", { name: /hook 2/ })
          .click();
        for (const { page } of tabs) {
          await expect.poll(() => part(page, "Second").getByText(/hook/).count()).toBe(1);
          await expect
            .poll(() => part(page, "Same run").getByRole("button", { name: /hook/ }).count())
            .toBe(1);
        }
        expect(tabs.map(({ requests }) => times(requests, "GET /api/approvals"))).toEqual([1, 1]);

        const gate = (await world.client.runs.get(id)).gates[0]?.operationId ?? "";
        const held = await one.page.route("**/api/approvals*", () => undefined);
        await world.client.runs.answer(id, gate, { approved: false });
        const late = part(one.page, "First").locator("p", { hasText: "hook" });
        await late.getByRole("button", { name: "Approve" }).click();
        await expect.poll(() => part(one.page, "First").getByRole("status").textContent()).toBe("CONFLICT");
        await held.dispose();
        for (const { page } of tabs) {
          await expect.poll(() => part(page, "First").getByText(/hook/).count()).toBe(0);
          for (const name of ["Run", "Same run"]) {
            await expect.poll(() => part(page, name).getAttribute("data-run")).toBe("completed");
            await expect.poll(() => part(page, name).getAttribute("data-status")).toBe("closed");
            const seqs = (await part(page, name).locator("b").textContent())?.split(" ").map(Number) ?? [];
            expect(seqs, "each event once").toEqual(seqs.map((_, index) => index + 1));
            expect(seqs.length).toBe((await world.client.runs.get(id)).seq);
          }
        }
        await part(two.page, "Run").getByRole("button", { name: "Cancel" }).click();
        await expect.poll(() => part(two.page, "Run").getByRole("status").textContent()).toBe("CONFLICT");
        expect(world.visitor.complaints.splice(0).every((text) => text.includes("409"))).toBe(true);
      });

      it("SHARE-2 closes its stream when it leaves, and opens one stream when it and the network return", async () => {
        const id = await start("work/payout", { amount: 1, currency: "EUR", due: "2026-01-01" });
        world.visitor = new Visitor(world.browser, world.server.url);
        const { page, requests, ended } = await tab(id);
        const events = "GET /api/runs/run/events";
        await expect.poll(() => part(page, "Run").getAttribute("data-status")).toBe("open");
        const asked = part(page, "First").locator("p", { hasText: "How much do we pay out?" });
        await asked.getByRole("button", { name: "Deny" }).click();
        await expect.poll(() => part(page, "First").getByRole("status").textContent()).toBe("INVALID_INPUT");
        await page.getByRole("button", { name: "Toggle" }).click();
        await expect.poll(() => times(ended, events)).toBe(1);
        await page.route("**/api/runs/run_*", (route) => route.abort());
        await page.getByRole("button", { name: "Toggle" }).click();
        await expect.poll(() => part(page, "Same run").getByRole("status").textContent()).toBe("NETWORK");
        await page.unroute("**/api/runs/run_*");
        await page.evaluate("dispatchEvent(new Event('online'))");
        await expect.poll(() => part(page, "Same run").getAttribute("data-run")).toBe("waiting");
        await expect.poll(() => part(page, "Same run").getAttribute("data-status")).toBe("open");
        expect(times(requests, events)).toBe(2);
        expect(await part(page, "Same run").getByRole("status").textContent()).toBe("");
        expect(times(requests, "GET /api/approvals"), "and again when the network returned").toBe(2);
        await part(page, "Run").getByRole("button", { name: "Cancel" }).click();
        await expect.poll(() => part(page, "Same run").getAttribute("data-run")).toBe("cancelled");
        expect(world.visitor.complaints.splice(0).every((text) => text.includes("ERR_FAILED"))).toBe(true);
      });

      it("SHARE-6 shows nothing of the user before, in the commit that changes the user", async () => {
        const { page, press, asked } = await waiting();
        const held = await page.route("**/api/approvals*", () => undefined);
        await page.evaluate(`{
          globalThis.shownToBen = [];
          const first = document.querySelector("[aria-label=First]");
          new MutationObserver(() => shownToBen.push(first.textContent)).observe(first, {
            childList: true, characterData: true, attributes: true, subtree: true,
          });
        }`);
        await press("Next user");
        await expect.poll(() => part(page, "First").getAttribute("data-loading")).toBe("true");
        expect(await page.evaluate("shownToBen")).toEqual([""]);
        await held.dispose();
        await press("Refresh");
        await expect.poll(asked).toBe(1);
      });

      it("SHARE-4 SHARE-5 sends nothing and keeps nothing without a component, and loads for the next component", async () => {
        const { page, requests, press, asked, isLive } = await waiting();
        await press("Switch inboxes");
        await press("Toggle");
        const before = times(requests, "GET /api/approvals");
        const held = await page.route("**/api/approvals*", () => undefined);
        await press("Refresh");
        await press("Switch inboxes");
        await press("Toggle");
        await expect.poll(() => part(page, "First").getAttribute("data-loading")).toBe("true");
        expect(await asked()).toBe(0);
        await expect.poll(() => part(page, "Run").getAttribute("data-run")).toBe("waiting");
        expect(times(requests, "GET /api/approvals")).toBe(before + 1);
        await held.dispose();
        await press("Refresh");
        await isLive();
      });

      it("SHARE-5 shows nothing that the server refuses, and everything again afterwards", async () => {
        const { page, id, press, asked, isLive } = await waiting();
        const refuse = (path: string, status: number, code: string) =>
          page.route(path, (route) => route.fulfill({ status, json: { code } }));
        const refused = [
          await refuse("**/api/approvals*", 403, "FORBIDDEN"),
          await refuse("**/api/runs/run_*", 404, "NOT_FOUND"),
        ];
        await press("Refresh");
        const [inbox, run] = [part(page, "First"), part(page, "Run")];
        await expect.poll(() => inbox.getByRole("status").textContent()).toBe("FORBIDDEN");
        await expect.poll(() => run.getByRole("status").textContent()).toBe("NOT_FOUND");
        expect(await asked()).toBe(0);
        expect(await run.getAttribute("data-run")).toBe(null);
        expect(await run.locator("b").textContent()).toBe("");
        for (const route of refused) await route.dispose();
        await press("Refresh");
        await isLive();
        const { seq } = await world.client.runs.get(id);
        const once = Array.from({ length: seq }, (_, index) => index + 1).join(" ");
        await expect.poll(() => run.locator("b").textContent(), { message: "each event once" }).toBe(once);
        expect(world.visitor.complaints.splice(0).every((text) => /40[34]/.test(text))).toBe(true);
      });

      it("I1 denies the call of a tool, and the conversation continues", async () => {
        const { id } = await world.client.conversations.create({ agentId: "clerk" });
        const { turnId } = await world.client.turns.start(id, {
          content: `!tool transfer {"url": "${world.desk.url("/hooks")}", "item": "ten euros"}`,
        });
        await expect
          .poll(async () => (await world.client.approvals.list({ conversation: id })).approvals.length)
          .toBe(1);
        world.visitor = new Visitor(world.browser, world.server.url);
        const { page } = await tab("run_01JD0000000000000000000000");
        await expect.poll(() => part(page, "Run").getByRole("status").textContent()).toBe("NOT_FOUND");
        await part(page, "Second")
          .locator("p", { hasText: "transfer" })
          .getByRole("button", { name: "Deny" })
          .click();
        await expect.poll(async () => (await world.client.turns.get(id, turnId)).status).toBe("completed");
        expect(JSON.stringify(await world.client.turns.get(id, turnId))).toContain("Too expensive.");
        expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("404")]);
      });
    });
  },
);
