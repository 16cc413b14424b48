/** The basics of a chat in the console: copy, colours of code, edit, fork, drafts, search and shortcuts, in a real browser. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { answers, hasChromium, NO_CHROMIUM, say, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

const CODE = `export const greeting = "Hello"; // ${"a long comment ".repeat(12)}`;

describe.runIf(hasChromium)(`a chat in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole();

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
    await page.getByTestId("earlier-version").waitFor();
    await page.getByTestId("answer-again").click();
    await expect.poll(() => page.getByTestId("earlier-version").count()).toBe(2);
    await answers(page, "Shorter.", false).last().waitFor();
    await page.getByTestId("fork").last().click();
    await page.waitForURL((url) => url.pathname.startsWith("/c/") && !url.pathname.includes(id));
    await page.getByTestId("original").waitFor();
    await answers(page, "Shorter.", false).last().waitFor();
  });

  it("I9 finds conversations, groups them by day, and is used by shortcuts, which a list explains", async () => {
    const { id } = await world.client.conversations.create({ agentId: "clerk", title: "Lamps for the hall" });
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
    await trigger.getByText("Cron 30 6 * * * (Europe/Berlin)").waitFor();
    await trigger.getByText("work/refunds").waitFor();
    await trigger.getByRole("button", { name: "Disable" }).click();
    await trigger.getByText("Disabled").waitFor();
  });
});
