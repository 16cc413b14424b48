/** Groups of a list of conversations by day. */
import { describe, expect, it } from "vitest";
import { groupsOf } from "../../app/src/groups.ts";
import { piecesOf } from "../../app/src/highlight.ts";

describe("groups of conversations", () => {
  it("I9 count midnights, and keep the pinned conversations apart", () => {
    const now = new Date(2031, 2, 10, 0, 30);
    const at = (days: number, hours = 23) => ({
      lastActivityAt: new Date(2031, 2, 10 - days, hours).toISOString(),
    });
    const pinned = { ...at(90), pinned: true as const };
    const items = [pinned, at(0, 0), at(1), at(2), at(7), at(8), at(30), at(31)];
    expect(groupsOf(items, now).map(([name, members]) => [name, members.length])).toEqual([
      ["Pinned", 1],
      ["Today", 1],
      ["Yesterday", 1],
      ["Previous 7 days", 2],
      ["Previous 30 days", 2],
      ["Older", 1],
    ]);
  });
});

describe("the colours of code", () => {
  it("I9 keep every character, and leave unknown languages plain", async () => {
    const code = 'const a = "x"; // "quote"\n\tlet π = /re/g;';
    const pieces = (await piecesOf(code, "TypeScript")) ?? [];
    expect(pieces.map(({ text }) => text).join("")).toBe(code);
    expect(pieces.some(({ kind }) => kind === "kwd")).toBe(true);
    expect(await piecesOf(code, "klingon")).toBeUndefined();
  });

  it.each([
    ["identifier characters", "a".repeat(201), "a".repeat(200)],
    ["blank lines", "\n".repeat(201), "\n".repeat(200)],
    ["blank lines with spaces", "\n ".repeat(101), "\n ".repeat(100)],
    ["a long line", "a ".repeat(251), "a ".repeat(250)],
    ["many lines", "a\n".repeat(2_501), "a\n".repeat(2_500)],
  ])("I9 COLOUR-1 leave costly code plain: %s", async (_, costly, allowed) => {
    expect(await piecesOf(costly, "c")).toBeUndefined();
    expect((await piecesOf(allowed, "c"))?.map(({ text }) => text).join("")).toBe(allowed);
  });

  it("I9 COLOUR-2 come block by block, and the page continues between them", async () => {
    const order: string[] = [];
    const timer = setInterval(() => order.push("page"));
    const code = "<a b=\n".repeat(700);
    const blocks = Array.from({ length: 4 }, () => piecesOf(code, "xml").then(() => order.push("block")));
    await Promise.all(blocks);
    clearInterval(timer);
    const first = order.indexOf("block");
    expect(order.slice(first).join(" ")).toMatch(/^block( page)+ block( page)+ block( page)+ block$/);
  });

  it("I9 COLOUR-2 are left out for a block that has left", async () => {
    const life = new AbortController();
    const first = piecesOf("let a;", "js");
    const left = piecesOf("let b;", "js", life.signal);
    life.abort();
    expect(await first).toBeDefined();
    expect(await left).toBeUndefined();
  });
});
