/** Memory in the console: lists, searches, one memory and its history, changes and deletion, in a real browser. */
import type { BrowserContextOptions, Page } from "playwright-core";
import { beforeAll, describe, expect, it } from "vitest";
import { hasChromium, NO_CHROMIUM, sidewaysScrollers, Visitor } from "../support/browser.ts";
import { workConsole } from "../support/work-console.ts";

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

describe.runIf(hasChromium)(`memory in the console (${hasChromium ? "Chromium" : NO_CHROMIUM})`, () => {
  const world = workConsole("memory");

  const visit = (path: string, options?: BrowserContextOptions): Promise<Page> => {
    world.visitor = new Visitor(world.browser, world.server.url, options);
    return world.visitor.open(path);
  };

  const write = (content: string, more: object = {}, agentId = "guide") =>
    world.client.memories.write(agentId, { content, ...more });
  /** Returns a conversation with so many answered questions. */
  async function converse(agentId: string, count: number): Promise<{ id: string; turnIds: string[] }> {
    const { id } = await world.client.conversations.create({ agentId });
    const turnIds: string[] = [];
    for (let index = 0; index < count; index++) {
      for await (const frame of world.client.streamTurn(id, { content: `Question ${index}` }))
        if (frame.type === "turn.completed") turnIds.push(frame.turnId ?? "");
    }
    return { id, turnIds };
  }

  const item = (page: Page, text: string) => page.getByTestId("memory-item").filter({ hasText: text });
  const details = (page: Page) => page.getByTestId("memory-details");

  beforeAll(async () => {
    await write("Ann prefers window seats on the train.", { type: "preference", subject: { userId: "ann" } });
    await write("Ben is allergic to peanuts.", { subject: { userId: "ben" }, significance: 0.9 });
    await write("The town hall opens at nine.", { type: "place" });
    await write("The clerk keeps the keys of the town hall.", {}, "clerk");
  });

  it("lists memories, filters them, and leads there from the agent, by keyboard", async () => {
    const page = await visit("/");
    await expect.poll(() => page.getByTestId("composer").isEnabled()).toBe(true);
    await page.getByTestId("all-agents").press("Enter");
    await page.waitForURL("**/a");
    await page.locator("[data-agent=guide] a").first().press("Enter");
    await page.waitForURL("**/a/guide");
    await page.getByText("Shows people the town.").waitFor();
    await page.getByTestId("agent-setup").getByText("Separate for each user").waitFor();
    await page.getByTestId("open-memory").press("Enter");
    await page.waitForURL("**/a/guide/memory");
    await page.getByTestId("memory-status").getByText("3 memories").waitFor();
    expect(await page.getByTestId("memory-item").allTextContents()).toEqual([
      expect.stringContaining("town hall"),
      expect.stringContaining("peanuts"),
      expect.stringContaining("window seats"),
    ]);
    const search = page.getByTestId("memory-search");
    await search.getByLabel("User").fill("ben");
    await search.getByLabel("User").press("Enter");
    await expect.poll(() => page.getByTestId("memory-item").count()).toBe(1);
    await item(page, "peanuts").getByText("About ben").waitFor();
    await search.getByLabel("State").selectOption("Archived");
    await page.getByText("No memory fits this choice.").waitFor();
    await page.getByRole("button", { name: "Show all current memories" }).press("Enter");
    await expect.poll(() => page.getByTestId("memory-item").count()).toBe(3);
    await search.getByLabel("Type").fill("place");
    await search.getByLabel("Type").press("Enter");
    await expect.poll(() => page.getByTestId("memory-item").count()).toBe(1);
  });

  it("searches, and explains the place of each result", async () => {
    const page = await visit("/a/guide/memory");
    await page.getByLabel("Search memories").fill("Which seat does Ann like on the train?");
    await page.getByRole("button", { name: "Search", exact: true }).press("Enter");
    const first = page.getByRole("list", { name: "Results" }).getByTestId("memory-item").first();
    await first.getByText("window seats").waitFor();
    await first.getByTestId("memory-score").locator("summary").press("Enter");
    await first.getByRole("row", { name: /Words in common/ }).waitFor();
    await first.getByText(/Words found: .*train/).waitFor();
    await first.getByRole("row", { name: /^Score/ }).waitFor();
  });

  it("MEMVIEW-4 keeps a search and its filters over a reload, and by the button Back", async () => {
    const page = await visit("/a/guide/memory");
    const search = page.getByTestId("memory-search");
    await search.getByLabel("Search memories").fill("window seats");
    await search.getByLabel("User").fill("ann");
    await search.getByLabel("User").press("Enter");
    await page.waitForURL("**/a/guide/memory?q=window+seats&user=ann");
    await page.reload();
    const results = page.getByRole("list", { name: "Results" });
    await results.getByText("window seats").waitFor();
    expect(await search.getByLabel("User").inputValue()).toBe("ann");
    await item(page, "window seats").getByRole("link").click();
    await page.waitForURL("**/a/guide/memory/mem_*?q=window+seats&user=ann");
    await page.getByRole("button", { name: "Close the memory" }).click();
    await page.waitForURL("**/a/guide/memory?q=window+seats&user=ann");
    await page.getByRole("button", { name: "Show all current memories" }).click();
    await page.waitForURL("**/a/guide/memory");
    await item(page, "town hall").waitFor();
    await page.goBack();
    await results.getByText("window seats").waitFor();
    expect(await search.getByLabel("Search memories").inputValue()).toBe("window seats");
  });

  it("MEMVIEW-3 marks the results that conversations do not recall", async () => {
    const page = await visit("/a/guide/memory?q=Which+trombone+opens+Leonard%27s+train%3F");
    const weak = page.getByTestId("memory-score").filter({ hasText: "Conversations do not recall it" });
    await weak.first().waitFor();
  });

  it("reports that no change is saved, and shows a refusal once", async () => {
    const { id } = await write("Emil sings.");
    const page = await visit(`/a/guide/memory/${id}`);
    await page.getByTestId("edit").click();
    const form = page.getByTestId("edit-memory");
    const save = form.getByRole("button", { name: "Save" });
    await form.getByLabel("Type").fill("  ");
    await save.click();
    await form.getByRole("alert").getByText("Not saved yet.").waitFor();
    await form.getByText("Enter a type.").waitFor();
    await form.getByLabel("Type").fill("fact");
    await form.getByLabel("Text").fill("   ");
    await save.click();
    await form.getByText("Enter what to remember.").waitFor();
    await form.getByLabel("Text").fill("x".repeat(300_000));
    await save.click();
    const refusal = form.getByRole("alert").getByText(/262144|256 KiB/);
    await refusal.waitFor();
    expect((await refusal.textContent())?.match(/262144|256 KiB/g)).toHaveLength(1);
    expect(world.visitor.complaints.splice(0)).toHaveLength(1);
    await world.client.memories.delete("guide", id);
  });

  it("has its filters on one line at 1440 pixels, and its hint in full at 390", async () => {
    const page = await visit("/a/guide/memory", { viewport: { width: 1440, height: 900 } });
    const search = page.getByTestId("memory-search");
    const boxes = await Promise.all(
      ["Type", "User", "State"].map((label) => search.getByLabel(label).boundingBox()),
    );
    expect(new Set(boxes.map((box) => `${box?.y} ${box?.height}`)).size).toBe(1);
    await page.setViewportSize({ width: 390, height: 844 });
    const isCut = () =>
      page.evaluate<boolean>(`(() => {
      const input = document.querySelector("[data-testid=memory-search] [type=search]");
      const text = document.createElement("canvas").getContext("2d");
      const { font, paddingLeft, paddingRight } = getComputedStyle(input);
      text.font = font;
      const room = input.clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight);
      return text.measureText(input.placeholder).width > room;
    })()`);
    await expect.poll(isCut).toBe(false);
  });

  it("adds, changes, explains, archives and deletes a memory", async () => {
    const page = await visit("/a/guide/memory");
    const form = page.getByTestId("add-memory");
    await form.locator("summary").press("Enter");
    await form.getByRole("button", { name: "Add memory" }).press("Enter");
    await form.getByText("Enter what to remember.").waitFor();
    await form.getByLabel("Text").fill("Cleo walks to work.");
    await form.getByLabel("About the user").fill("cleo");
    await form.getByLabel("Importance").fill("0.7");
    await form.getByRole("button", { name: "Add memory" }).press("Enter");
    await page.getByTestId("memory-note").getByText("The memory was added.").waitFor();
    await details(page).getByText("Cleo walks to work.").waitFor();
    await item(page, "Cleo").waitFor();

    await page.getByTestId("edit").press("Enter");
    const edit = page.getByTestId("edit-memory");
    await edit.getByLabel("Text").fill("Cleo rides to work.");
    await edit.getByRole("button", { name: "Save" }).press("Enter");
    await page.getByTestId("memory-text").getByText("Cleo rides to work.").waitFor();
    await item(page, "Cleo rides").waitFor();
    const log = page.getByTestId("memory-log");
    await log.getByText("Changed by local").waitFor();
    await log.getByText("The text before").press("Enter");
    await log.getByText("Cleo walks to work.").waitFor();

    await page.getByTestId("archive").press("Enter");
    await page.getByTestId("archive").getByText("Take it out of searches?").waitFor();
    await page.getByTestId("archive").press("Enter");
    await page.getByTestId("memory-facts").getByText("Archived").first().waitFor();
    await expect.poll(() => item(page, "Cleo").count()).toBe(0);
    await page.getByTestId("delete-memory").press("Enter");
    await page.getByTestId("delete-memory").getByText("Erase it for good?").waitFor();
    await page.getByTestId("delete-memory").press("Enter");
    await page.waitForURL("**/a/guide/memory");
    await page.getByTestId("memory-note").getByText("The memory was deleted.").waitFor();
    await page.getByTestId("memory-search").getByLabel("State").selectOption("All");
    await item(page, "town hall").waitFor();
    expect(await item(page, "Cleo").count()).toBe(0);
  });

  it("MEMVIEW-2 never overwrites a change of another person, and keeps the reader's text", async () => {
    const { id } = await write("Dora lives in the old town.");
    const page = await visit(`/a/guide/memory/${id}`);
    await page.getByTestId("edit").click();
    await page.getByTestId("edit-memory").getByLabel("Text").fill("Dora lives by the river.");
    await world.client.memories.update("guide", id, { content: "Dora lives in the new town." });
    await page.getByTestId("edit-memory").getByRole("button", { name: "Save" }).click();
    const alert = page.getByTestId("edit-memory").getByRole("alert");
    await alert.getByText("Dora lives in the new town.").waitFor();
    expect((await world.client.memories.get("guide", id)).version).toBe(2);
    expect(world.visitor.complaints.splice(0)).toEqual([expect.stringContaining("409")]);
    expect(await page.getByTestId("edit-memory").getByLabel("Text").inputValue()).toBe(
      "Dora lives by the river.",
    );
    await page.getByTestId("edit-memory").getByRole("button", { name: "Save" }).click();
    await page.getByTestId("memory-text").getByText("Dora lives by the river.").waitFor();
    await page.keyboard.press("Escape");
    await page.waitForURL("**/a/guide/memory");
    expect(await page.locator(`[data-memory="${id}"] a:focus`).count(), "the focus returns").toBe(1);
    await world.client.memories.delete("guide", id);
  });

  it("searches several agents for readers who see all memories", async () => {
    const page = await visit("/a/guide/memory");
    await page.getByRole("link", { name: "Search several agents" }).click();
    await page.waitForURL("**/memories");
    await page.getByLabel("Search memories").fill("town hall");
    await page.getByLabel("Search memories").press("Enter");
    await item(page, "keys").getByText("Clerk", { exact: true }).waitFor();
    await item(page, "opens at nine").getByText("Guide", { exact: true }).waitFor();
    await page.getByLabel("Guide").uncheck();
    await page.getByRole("button", { name: "Search" }).click();
    await expect.poll(() => item(page, "opens at nine").count()).toBe(0);
    await item(page, "keys").getByRole("link").click();
    await page.waitForURL("**/a/clerk/memory/mem_*");
    await page.getByTestId("memory-text").getByText("The clerk keeps the keys").waitFor();
  });

  it("shows a member only the memories about that member, and no form for new memories", async () => {
    const page = await visit("/a/guide/memory", { extraHTTPHeaders: { "x-member": "ann" } });
    await page.getByText("You see the memories about you.").waitFor();
    await item(page, "window seats").waitFor();
    expect(await page.getByTestId("memory-item").count()).toBe(1);
    expect(await page.getByTestId("add-memory").count()).toBe(0);
    expect(await page.getByRole("link", { name: "Search several agents" }).count()).toBe(0);
    await page.goto(new URL("/memories", world.server.url).href);
    await page.getByLabel("Search memories").fill("town hall");
    await page.getByLabel("Search memories").press("Enter");
    await page.getByRole("alert").getByText("Only authors, operators and administrators").waitFor();
    const { complaints } = world.visitor;
    expect(complaints.splice(0).every((text) => text.includes("403"))).toBe(true);
  });

  it("leads from a link to a turn of a long conversation", async () => {
    const { id, turnIds } = await converse("guide", 60);
    const [first = ""] = turnIds;
    const page = await visit(`/c/${id}#${first}`);
    const turn = page.locator(`[data-turn="${first}"]`);
    await turn.getByText("Question 0", { exact: true }).waitFor();
    await expect.poll(() => turn.evaluate((element) => element.matches(":focus"))).toBe(true);
    expect(await turn.getByText("Question 0", { exact: true }).isVisible()).toBe(true);
    await expect.poll(async () => ((await turn.boundingBox())?.y ?? -1) > 0).toBe(true);
  });

  it("deletes a conversation after a second press, and leads from it to the memory of its agent", async () => {
    const { id } = await converse("guide", 1);
    const page = await visit(`/c/${id}`);
    await page.getByTestId("message-user").getByText("Question 0").waitFor();
    await page.getByTestId("settings").press("Enter");
    expect(await page.getByTestId("export").getAttribute("href")).toBe(`/api/conversations/${id}/export`);
    await page.getByTestId("agent-memory").press("Enter");
    await page.waitForURL("**/a/guide/memory");
    await page.goBack();
    await page.getByTestId("settings").press("Enter");
    await page.getByTestId("delete-conversation").press("Enter");
    await page.getByTestId("delete-conversation").getByText("Delete it for good?").waitFor();
    expect((await world.client.conversations.get(id)).id).toBe(id);
    await page.getByTestId("delete-conversation").press("Enter");
    await page.getByTestId("agent-picker").waitFor();
    await expect.poll(() => page.locator(`a[href="/c/${id}"]`).count()).toBe(0);
    await expect(world.client.conversations.get(id)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("erases a message of a turn after a second press, and leaves a placeholder", async () => {
    const { id } = await converse("guide", 1);
    const page = await visit(`/c/${id}`);
    await page.getByTestId("turn-menu").press("Enter");
    await page.getByTestId("open-erase").press("Enter");
    const asked = page.getByTestId("erasable").first();
    await asked.getByTestId("erase-entry").press("Enter");
    await asked.getByTestId("erase-entry").getByText("Erase it for good?").waitFor();
    await page.getByTestId("message-user").getByText("Question 0").waitFor();
    await asked.getByTestId("erase-entry").press("Enter");
    await asked.getByRole("status").getByText("Erased").waitFor();
    await page.keyboard.press("Escape");
    await page.getByTestId("message-user").getByText("[erased]").waitFor();
    expect(await page.locator("[data-testid=turn-menu]:focus").count(), "the focus returns").toBe(1);
    await page.reload();
    await page.getByTestId("message-user").getByText("[erased]").waitFor();
  });

  it("links from a memory to its source turn", async () => {
    const { id, turnIds } = await converse("clerk", 1);
    const source = { conversationId: id, turnId: turnIds[0] ?? "" };
    const lines = (await new Response(await world.client.agents.export("clerk")).text()).trim().split("\n");
    const withSource = lines.map((text) => {
      const line: { memory?: object } = JSON.parse(text);
      return JSON.stringify(
        line.memory === undefined ? line : { memory: { ...line.memory, sources: [source] } },
      );
    });
    const { id: agentId } = await world.client.agents.import(new Blob([withSource.join("\n")]));
    const page = await visit(`/a/${agentId}/memory`);
    await item(page, "keys").getByRole("link").press("Enter");
    await page.getByTestId("memory-log").getByText("Written by local").waitFor();
    await page.getByTestId("memory-sources").getByRole("link").press("Enter");
    await page.waitForURL(`**/c/${id}#*`);
    await page.locator(`[data-turn="${source.turnId}"]`).getByText("Question 0", { exact: true }).waitFor();
    await world.client.agents.delete(agentId);
  });

  it("shows the recalled and the learned memories of a turn, with links to them", async () => {
    const past = await world.client.conversations.create({ agentId: "friend" });
    const say = async (id: string, content: string) => {
      for await (const _ of world.client.streamTurn(id, { content }));
    };
    await say(past.id, "Remember that my cat is called Miso.");
    const { id } = await world.client.conversations.create({ agentId: "friend" });
    await say(id, "What is my cat called? My cat is grey.");
    const learned = async () =>
      (await world.client.conversations.journal(id)).entries.some(
        ({ type }) => type === "memory_extraction.applied",
      );
    await expect.poll(learned, { timeout: 10_000 }).toBe(true);
    const page = await visit(`/c/${id}`);
    await page.getByTestId("open-trace").press("Enter");
    const shown = page.getByTestId("turn-memories");
    await shown.getByTestId("recalled-memory").getByText("The user's cat is called Miso.").waitFor();
    await shown.getByTestId("learned-memory").getByText("The user's cat is grey.").waitFor();
    expect(await shown.getByRole("listitem").count()).toBe(2);
    await shown.getByRole("link", { name: "The user's cat is grey." }).press("Enter");
    await page.waitForURL("**/a/friend/memory/mem_*");
    await page.getByTestId("memory-text").getByText("The user's cat is grey.").waitFor();
    await page.getByTestId("memory-sources").getByRole("link").press("Enter");
    await page.waitForURL(`**/c/${id}#*`);
    await page.getByText("What is my cat called? My cat is grey.").first().waitFor();
  });

  it("exports an agent, and imports it with its memories under another id", async () => {
    const page = await visit("/a/clerk");
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByTestId("export").click()]);
    await page.goto(new URL("/a", world.server.url).href);
    await page.getByTestId("import-agent").locator("summary").press("Enter");
    await page.getByLabel("File of an export").setInputFiles(await download.path());
    await page.waitForURL(/\/a\/(?!clerk)[^/]+$/);
    await page.getByTestId("memory-status").getByText("1 memory").waitFor();
    await page.getByTestId("open-memory").press("Enter");
    await item(page, "keys").waitFor();
  });

  it("deletes an agent after a second press", async () => {
    const response = await fetch(new URL("/api/agents", world.server.url), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "brief", persona: "town/clerk" }),
    });
    expect(response.status).toBe(201);
    const page = await visit("/a/brief");
    await page.getByTestId("delete-agent").press("Enter");
    await page.getByTestId("delete-agent").getByText("Delete it all for good?").waitFor();
    await page.getByTestId("delete-agent").press("Enter");
    await page.waitForURL("**/a");
    await page.locator("[data-agent=guide]").waitFor();
    await expect.poll(() => page.locator("[data-agent=brief]").count()).toBe(0);
    await expect(world.client.agents.get("brief")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("fits 390 pixels: the list, results with scores, a memory and its forms, by touch", async () => {
    const long = `a-${"very-".repeat(36)}long-word`;
    const { id } = await write(`Remember ${long}.`, { type: long, speaker: long, session: long, key: long });
    const page = await visit("/a/guide/memory", PHONE);
    const fits = async (name: string) => expect(await sidewaysScrollers(page), name).toEqual([]);
    await item(page, "very-").waitFor();
    await fits("list");
    await page.getByTestId("add-memory").locator("summary").tap();
    await fits("form");
    await page.getByLabel("Search memories").fill("window seats on the train");
    await page.getByRole("button", { name: "Search", exact: true }).tap();
    await page.getByTestId("memory-score").first().locator("summary").tap();
    await fits("results");
    await page.getByRole("button", { name: "Show all current memories" }).tap();
    await item(page, "very-").getByRole("link").tap();
    await details(page).waitFor();
    expect(
      await page.getByTestId("memory-search").isVisible(),
      "the memory takes the place of the list",
    ).toBe(false);
    await fits("memory");
    await page.getByTestId("edit").tap();
    await fits("edit");
    await page.getByRole("link", { name: "All memories" }).tap();
    await item(page, "very-").waitFor();
    await world.client.memories.delete("guide", id);
    await page.goto(new URL("/a", world.server.url).href);
    await page.locator("[data-agent=guide]").waitFor();
    await fits("agents");
    await page.goto(new URL("/a/guide", world.server.url).href);
    await page.getByTestId("delete-agent").waitFor();
    await fits("agent");
  });
});
