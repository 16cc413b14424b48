/** The list of conversations in the console: rename, pin, archive, forks and the order by activity, in a real browser. */
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { hasChromium, NO_CHROMIUM, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

describe.runIf(hasChromium)(`the list of conversations (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole();

  async function talk(text: string): Promise<string> {
    const { id } = await world.client.conversations.create({ agentId: "clerk" });
    for await (const _ of world.client.streamTurn(id, { content: `!say ${text}` }));
    return id;
  }

  for (const width of [390, 1440]) {
    it(`G24 TITLE-1 TITLE-4 DIR-13 renames, pins, archives and shows forks at ${width} px`, async () => {
      const first = await talk(`First ${width}`);
      await talk(`Second ${width}`);
      const fork = await world.client.conversations.fork(first);
      world.visitor = new Visitor(world.browser, world.server.url, { viewport: { width, height: 800 } });
      const page = await world.visitor.open(`/c/${first}`);
      /** Shows the list, which small screens have in a drawer. */
      const withList = async (work: (list: Page) => Promise<void>) => {
        if (width < 768) await page.getByRole("button", { name: "Conversations", exact: true }).click();
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
