/** Every page of the console under axe, at two widths, in light and in dark, in a real browser. */
import { source } from "axe-core";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { answers, hasChromium, NO_CHROMIUM, say, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

describe.runIf(hasChromium)(`axe on every page (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole();

  /** Returns the violations of the page: their rules, with the first element of each. */
  async function violations(page: Page): Promise<string[]> {
    await page.evaluate(`${source}; undefined`);
    return page.evaluate(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
      violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html, failureSummary }) => html.slice(0, 200) + " " + failureSummary).join(" | ")))`);
  }

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
          for (const violation of await violations(page))
            found.push(`${path} ${width} ${colorScheme} ${violation}`);
        }
        for (const element of await sidewaysScrollers(page))
          found.push(`${path} ${width} scrolls: ${element}`);
      }
    }
    expect(found).toEqual([]);
  });
});
