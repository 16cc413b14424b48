/** The console's pure parts: routes and display texts. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Addressee, addresseeOf } from "../../app/src/addressee.ts";
import {
  agentDescription,
  agentName,
  ageText,
  amountsText,
  approvalText,
  budgetText,
  exactJson,
  inputPreview,
  momentOf,
  prettyJson,
  previewOf,
  progressOf,
  timeInList,
  titleFrom,
} from "../../app/src/format.ts";
import { plainSnippet } from "../../app/src/inspector/plain-snippet.ts";
import {
  choiceOf,
  filterOf,
  lastNight,
  messageSearchOf,
  searchOf,
} from "../../app/src/inspector/turn-filter.ts";
import { conversationPath, newPath, routeOf, runPath, TURN_VIEWS, turnPath } from "../../app/src/route.ts";
import {
  replacedTurns,
  shownTurns,
  threadsOf,
  turnsBefore,
  waitOf,
  wasStopped,
} from "../../app/src/turns.ts";
import type { LiveConversation, MessageView, OperationState, TurnState } from "../../src/client/index.ts";
import type { AgentSummary } from "../../src/protocol/agent-api.ts";
import { messageId } from "../../src/protocol/ids.ts";

describe("addresses", () => {
  it("a conversation's address names that conversation, whatever its id", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "grapheme" }), (id) => {
        expect(routeOf(conversationPath(id))).toEqual({ page: "conversation", id });
        expect(routeOf(runPath(id))).toEqual({ page: "run", id });
      }),
    );
  });

  it("G22 INSPECT-1 INSPECT-4 each view of a turn has its own address, whatever the ids", () => {
    const id = fc.string({ minLength: 1, unit: "grapheme" });
    fc.assert(
      fc.property(id, id, fc.constantFrom(...TURN_VIEWS), (conversation, turnId, view) => {
        const path = turnPath(conversation, turnId, view);
        expect(routeOf(path)).toEqual({ page: "turn", id: conversation, turnId, view });
        const chosen = turnPath(conversation, turnId, view, 12);
        expect(routeOf(chosen)).toEqual({ page: "turn", id: conversation, turnId, view, call: 12 });
        expect(routeOf(`${path}?call=x`)).toEqual({ page: "turn", id: conversation, turnId, view });
      }),
    );
  });

  it("G22 the address of the list of turns keeps its filters, and a period counts from now", () => {
    const night = lastNight(new Date(2026, 4, 2, 8));
    expect(choiceOf(searchOf(night))).toEqual(night);
    const since = new Date(2026, 4, 1, 18).toISOString();
    const now = new Date(2026, 4, 2, 8);
    const read = (search: string) => filterOf(choiceOf(search), now);
    expect(filterOf(night, now)).toEqual({ status: "failed", since });
    expect(read("?status=broken&last=1y&until=2026-05&tool=shop/stock")).toEqual({
      tool: "shop/stock",
      until: "2026-05",
    });
    expect(read("?since=2026-05-03&until=soon")).toEqual({ since: "2026-05-03", until: "soon" });
    const hoursAgo = (hours: number) => new Date(now.getTime() - hours * 3_600_000).toISOString();
    expect(read("?last=24h&status=failed")).toEqual({ status: "failed", since: hoursAgo(24) });
    const search = messageSearchOf(choiceOf("?text=lamps&last=7d&role=agent"), now);
    expect(search).toEqual({ q: "lamps", role: "agent", since: hoursAgo(168) });
    expect(routeOf(`/turns${searchOf(night)}`)).toEqual({ page: "turns", search: searchOf(night) });
    expect(routeOf("/turns")).toEqual({ page: "turns" });
  });

  it.each(["/runs", "/runs/"])("%s lists the runs", (path) => {
    expect(routeOf(path)).toEqual({ page: "runs" });
  });

  it.each(["/", "", "/?other=guide", "/#top"])("%s is the beginning of a conversation", (path) => {
    expect(routeOf(path)).toEqual({ page: "new" });
  });

  it("I9 the address of a new conversation may choose its agent", () => {
    expect(routeOf(newPath("guide & co"))).toEqual({ page: "new", agentId: "guide & co" });
  });

  it.each([
    "/c",
    "/c/",
    "/c/a/b",
    "/runs/a/b",
    "/x/y",
    "/c/%E0%A4%A",
    "/c/a/turns",
    "/c/a/turns/b/x",
    "//runs",
  ])("%s has no page", (path) => {
    expect(routeOf(path)).toEqual({ page: "missing", path });
  });
});

describe("snippets of messages", () => {
  const words = fc.array(
    fc.constantFrom(
      "refund",
      "**",
      "`",
      "# ",
      "[a](b)",
      " ",
      "\n",
      "- ",
      "```ts",
      "x",
      "__refund__",
      "(",
      "](",
    ),
    { maxLength: 12 },
  );
  it("SNIPPET-1 keeps each found word and its mark, and leaves out the signs of Markdown", () => {
    fc.assert(
      fc.property(words, (parts) => {
        const snippet = parts.join("");
        const marks = [...snippet.matchAll(/refund/g)].map(({ index }) => [index, index + 6]);
        const plain = plainSnippet({ snippet, marks });
        expect(plain.marks).toHaveLength(marks.length);
        for (const [from, to] of plain.marks) expect(plain.snippet.slice(from, to)).toBe("refund");
      }),
    );
    const snippet = "…## **Refund** of `A1`\n- see [the rules](https://example.com/a) and 2 * 3";
    expect(plainSnippet({ snippet, marks: [[6, 12]] })).toEqual({
      snippet: "…Refund of A1\nsee the rules and 2 * 3",
      marks: [[1, 7]],
    });
  });
});

describe("amounts", () => {
  it.each([
    [{ tokens: 1 }, "1 token"],
    [{ tokens: 1_250, usd: 0.003_12 }, "1,250 tokens · $0.0031"],
    [{ tokens: 3, usd: 89.318 }, "3 tokens · $89.32"],
    [{ tokens: 12, usd: 0.000_01 }, "12 tokens · less than $0.0001"],
    [{ tokens: 0, usd: 0 }, "0 tokens"],
  ])("%j as text", (amounts, text) => {
    expect(amountsText(amounts, "en-US")).toBe(text);
  });

  it.each([
    [undefined, undefined],
    [{ tokens: 4_000, usd: 0 }, "Budget left: 4,000 tokens · $0"],
    [{ usd: 0.5, modelCalls: 3, toolCalls: 0 }, "Budget left: $0.50 · 3 model calls · 0 tool calls"],
  ])("left of a budget: %j", (left, text) => {
    expect(budgetText(left, "en-US")).toBe(text);
  });
});

describe("titles", () => {
  it.each([
    ["  What is\n 12*(3+4)?  ", "What is 12*(3+4)?"],
    ["word ".repeat(20), `${"word ".repeat(11)}word…`],
    ["x".repeat(80), `${"x".repeat(60)}…`],
  ])("of %j", (text, title) => {
    expect(titleFrom(text)).toBe(title);
  });
});

it.each([
  [new Date(2026, 4, 6, 9, 5), "09:05"],
  [new Date(2026, 3, 7, 9, 5), "7 Apr"],
  [new Date(2025, 4, 6, 9, 5), "6 May 2025"],
])("a list shows a time of today, and another day's date", (at, text) => {
  expect(timeInList(at.toISOString(), new Date(2026, 4, 6, 23, 59), "en-GB")).toBe(text);
});

it.each([
  [{ expiresAt: "2026-05-06T09:05:00" }, undefined],
  [
    { outcome: "approved", by: { type: "user", userId: "ada" }, at: "2026-05-06T09:05:00" },
    "Approved by ada, 09:05",
  ],
  [
    {
      outcome: "denied",
      by: { type: "user", userId: "ada" },
      at: "2026-05-05T09:05:00",
      reason: "Not \u202e5.",
    },
    "Denied by ada, 5 May, 09:05: “Not \\u202e5.”",
  ],
  [{ outcome: "expired", at: "2026-05-06T09:05:00" }, "No approval in time, 09:05"],
  [{ outcome: "superseded" }, "Not approved, because a newer message came"],
] as const)("the end of a request for approval: %j", (approval, text) => {
  expect(approvalText(approval, new Date("2026-05-06T23:59:00"), "en-GB")).toBe(text);
});

describe("values", () => {
  it.each([
    [{ expression: "1+1" }, "1+1"],
    [{ a: 1, b: [2] }, '{"a":1,"b":[2]}'],
    [{ nested: { a: 1 } }, '{"nested":{"a":1}}'],
    [{}, ""],
    [null, "null"],
    [undefined, ""],
    [7, "7"],
  ])("%j on one line", (value, text) => {
    expect(previewOf(value)).toBe(text);
  });

  it("the call of an agent on one line without its mode, which the members of other tools keep", () => {
    const input = { message: "Join us.", invocationMode: "loop_in" };
    expect(inputPreview(input, true)).toBe("Join us.");
    expect(inputPreview(input, false)).toBe(JSON.stringify(input));
    expect(inputPreview(undefined, true)).toBe("");
  });

  it.each([
    [
      { percent: 40, step: "cities" },
      { text: "40 % · cities", fraction: 0.4 },
    ],
    [{ percent: 250 }, { text: "250 %", fraction: 1 }],
    [
      { done: 2, total: 8 },
      { text: "2 of 8", fraction: 0.25 },
    ],
    [{ done: 2, total: 0 }, { text: '{"done":2,"total":0}' }],
    ["Reading", { text: "Reading" }],
    [{ step: "reading" }, { text: "reading" }],
    [undefined, { text: "" }],
  ])("progress %j", (progress, shown) => {
    expect(progressOf(progress)).toEqual(shown);
  });

  it.each([
    [new Date(2026, 4, 6, 9, 5), "09:05"],
    [new Date(2026, 4, 7, 9, 5), "7 May, 09:05"],
    [new Date(2024, 4, 7, 9, 5), "7 May 2024, 09:05"],
  ])("a moment has a date except today, and a year except this year", (at, text) => {
    expect(momentOf(at.toISOString(), new Date(2026, 4, 6, 23, 59), "en-GB")).toBe(text);
  });

  it("shows text as text and the rest as indented JSON", () => {
    expect(prettyJson("a\nb")).toBe("a\nb");
    expect(exactJson({ to: "a\u202eb\u200bc\u{e0041}é" })).toBe(
      '{\n  "to": "a\\u202eb\\u200bc\\udb40\\udc41é"\n}',
    );
    for (const unseen of "\u{e0141}\ufe0f\u034f\u3164\u115f\uffa0\u17b4\u180b\u180f\u2800\u00a0\u2003\u3000")
      expect(exactJson(unseen), unseen.codePointAt(0)?.toString(16)).toMatch(/^(\\u[0-9a-f]{4})+$/);
    expect(exactJson("a b é 😀 日本")).toBe("a b é 😀 日本");
    expect(prettyJson({ a: [1] })).toBe('{\n  "a": [\n    1\n  ]\n}');
    expect(prettyJson(undefined)).toBe("");
  });
});

describe("turns", () => {
  const turn = (id: string, rest: Partial<TurnState> = {}): TurnState => ({
    ...{ id, status: "active", agentId: "guide", createdAt: "2026-03-01T10:00:00.000Z", completedAt: null },
    ...{ items: [], retries: [], retrying: false },
    ...rest,
  });

  it("wait for as many turns as their place in the queue", () => {
    const queued = { phase: "queued" } as const;
    const over = { ...queued, status: "failed" } as const;
    const turns = [turn("a"), turn("b", over), turn("c", queued), turn("d"), turn("e", queued)];
    expect(turns.map((one) => turnsBefore(turns, one))).toEqual([0, 0, 1, 0, 2]);
  });

  it("are threads if several answer at once, or if other turns have spoken between their messages", () => {
    const messagesOf = (...ids: string[]): MessageView[] =>
      ids.map((turnId, index) => ({ id: `m${index}`, turnId, role: "agent", content: "", createdAt: "" }));
    const over = { status: "completed" } as const;
    const shown = (turns: TurnState[], ...ids: string[]) => [...threadsOf(turns, messagesOf(...ids))];
    expect(shown([turn("a", over), turn("b")], "a", "a", "b")).toEqual([]);
    expect(shown([turn("a"), turn("b")], "a", "b")).toEqual(["a", "b"]);
    expect(shown([turn("a", over), turn("b", over)], "a", "b", "a", "b")).toEqual(["a", "b"]);
    expect(shown([turn("a", over), turn("b", over)], "a", "b", "b", "a")).toEqual(["a"]);
    expect(shown([turn("a", { phase: "waiting" }), turn("b", over)], "a", "b", "b")).toEqual([]);
    expect(shown([turn("a"), turn("b", { phase: "queued" })], "a", "b")).toEqual(["a"]);
  });

  it("DEFER-5 wait for work in the background, or for a deferred result, while they are active", () => {
    const operation = { id: "o", turnId: "d", name: "pay", input: {}, state: "running" } as const;
    const deferred = { ...operation, deferredUntil: "2026-03-01T11:00:00.000Z" };
    const tools = (...operations: OperationState[]) => ({
      items: operations.map((one, index) => ({ type: "tool" as const, id: `o${index}`, operation: one })),
    });
    const turns = [
      turn("a"),
      turn("b", { phase: "waiting" }),
      turn("c", { phase: "waiting", status: "failed", ...tools(deferred) }),
      turn("d", { phase: "waiting", ...tools({ ...operation, state: "completed" }, deferred) }),
      turn("e", { phase: "waiting", ...tools({ ...deferred, async: true }) }),
      turn("f", tools(deferred)),
    ];
    expect(turns.map(waitOf)).toEqual([null, "background", null, "result", "background", null]);
  });

  it("ASK-1 wait for approval if their own calls wait, or the calls of an agent below", () => {
    const operation = { id: "o", turnId: "t", name: "ask", input: {}, state: "running" } as const;
    const ask = { operationId: "op", conversationId: "c", agentId: "dev", name: "pay", expiresAt: "" };
    const agent = { id: "dev", mode: "delegate" as const, asks: [ask] };
    const own = { ...operation, state: "awaiting_approval" } as const;
    const below = { ...operation, agent };
    const later = { async: true } as const;
    const waits = (...operations: OperationState[]) =>
      waitOf(
        turn("t", {
          phase: "waiting",
          items: operations.map((one, index) => ({ type: "tool" as const, id: `o${index}`, operation: one })),
        }),
      );
    expect(waits(own)).toBe("approval");
    expect(waits(below)).toBe("approval");
    expect(waits(below, { ...operation, deferredUntil: "2026-03-01T11:00:00.000Z" })).toBe("approval");
    expect(waits({ ...below, ...later })).toBe("approval");
    expect(waits({ ...operation, held: true })).toBe("person");
    expect(waits({ ...operation, held: true, ...later })).toBe("person");
    expect(waits({ ...operation, held: true, ...later }, { ...operation, ...later })).toBe("background");
    expect(waits({ ...own, ...later }, { ...operation, state: "completed" })).toBe("approval");
    expect(waits({ ...below, ...later }, { ...operation, ...later })).toBe("background");
    expect(waits({ ...below, state: "completed" }, { ...operation, ...later })).toBe("background");
  });

  it("were stopped if their error is CANCELLED, or their only trace is a stopped message", () => {
    const error = (code: string) => ({ error: { code, message: "No.", retriable: true } });
    const message = {
      id: "m",
      turnId: "a",
      role: "agent",
      content: "Half",
      createdAt: "",
      stopped: true,
    } as const;
    const items = [{ type: "message", id: "m", message } as const];
    expect(wasStopped(turn("a", error("CANCELLED")))).toBe(true);
    expect(wasStopped(turn("a", { ...error("MODEL_FAILED"), items }))).toBe(false);
    expect(wasStopped(turn("a", { items }))).toBe(true);
    expect(wasStopped(turn("a"))).toBe(false);
  });
});

describe("NEXT-1 the next message is for", () => {
  const turn = (n: number, agentId: string, rest: Partial<TurnState> = {}): TurnState => ({
    ...{ id: `t${n}`, status: "completed", agentId, createdAt: "", completedAt: null },
    ...{ items: [], retries: [], retrying: false },
    ...rest,
  });
  const next = (text: string, turns: TurnState[], ...participants: string[]) =>
    addresseeOf(
      {
        conversation: {
          agentId: "boss",
          participants: participants.map((id) => ({
            type: id === "ada" || id === "bob" ? "user" : "agent",
            id,
          })),
        },
        turns,
      } as unknown as LiveConversation,
      text,
    );

  it.each<[string, TurnState[], string[], Addressee | null]>([
    ["Hi", [], ["ada", "boss"], { agentId: "boss" }],
    ["Hi", [], ["ada", "boss", "dev"], { agentId: "boss" }],
    ["Hi", [turn(1, "boss"), turn(2, "dev")], ["ada", "boss", "dev"], { agentId: "dev" }],
    // The newest turn decides, independent of the last speaker.
    ["Hi", [turn(1, "boss"), turn(2, "dev", { silent: true })], ["ada", "boss", "dev"], { agentId: "boss" }],
    [
      "Hi",
      [turn(1, "boss"), turn(2, "dev", { status: "failed" })],
      ["ada", "boss", "dev"],
      { agentId: "boss" },
    ],
    [
      "Hi",
      [turn(1, "boss"), turn(2, "dev", { status: "active" })],
      ["ada", "boss", "dev"],
      { agentId: "boss" },
    ],
    [
      "Hi",
      [turn(1, "boss"), turn(2, "dev", { status: "active", phase: "waiting" })],
      ["ada", "boss", "dev"],
      { agentId: "dev" },
    ],
    ["Hi", [turn(1, "boss"), turn(2, "gone")], ["ada", "boss", "dev"], { agentId: "boss" }],
    ["@Dev, @boss", [turn(1, "boss")], ["ada", "boss", "dev"], { agentId: "dev" }],
    ["@nobody @dev", [turn(1, "boss")], ["ada", "boss", "dev"], { agentId: "dev" }],
    ["@nobody, hi", [turn(1, "dev")], ["ada", "boss", "dev"], { agentId: "dev", unknown: "nobody" }],
    ["@nobody, hi", [], ["ada", "boss"], { agentId: "boss", unknown: "nobody" }],
    ["Mail a@b.example", [], ["ada", "boss"], { agentId: "boss" }],
    ["Hi", [turn(1, "dev")], ["ada", "bob", "boss", "dev"], {}],
    ["@dev", [], ["ada", "bob", "boss", "dev"], { agentId: "dev" }],
  ])("%j", (text, turns, participants, addressee) => {
    expect(next(text, turns, ...participants)).toEqual(addressee);
  });
});

describe("agents", () => {
  const agent = (persona: AgentSummary["persona"], offer: Partial<AgentSummary> = {}): AgentSummary => ({
    ...offer,
    id: "travel-guide",
    tenant: "local",
    persona,
    projectIds: ["default"],
    createdAt: "2026-03-01T10:00:00.000Z",
    updatedAt: "2026-03-01T10:00:00.000Z",
  });
  const identity = { systemPrompt: "You know every road. You speak little." };

  it("are named by their persona, or by their id", () => {
    expect(agentName(agent({ identity }, { name: "Ada" }))).toBe("Ada");
    expect(agentName(agent({ identity }))).toBe("Travel guide");
    expect(agentName(agent({ library: "demo", id: "guide" }))).toBe("Travel guide");
  });

  it("are described by their persona, their prompt, or the source of their persona", () => {
    expect(agentDescription(agent({ identity }, { description: "Knows roads." }))).toBe("Knows roads.");
    expect(agentDescription(agent({ identity }))).toBe("You know every road.");
    expect(agentDescription(agent({ library: "demo", id: "guide", version: 2 }))).toBe("demo/guide");
  });
});

describe("the versions of turns", () => {
  const idOf = (n: number) => messageId({ n, stem: "01JD000000000000000" }, 0).replace("msg_", "turn_");
  const numbers = [1, 2, 3, 4, 5, 6, 7];
  const turns = numbers.map((n) => ({ id: idOf(n) }));
  /** 3 answers 1 again, 5 edits 4, 6 edits 3. */
  const olds: Record<number, object> = {
    3: { regenerates: idOf(1) },
    5: { edits: idOf(4) },
    6: { edits: idOf(3) },
  };
  const messages = numbers.map((n): MessageView => {
    const said = { id: idOf(n), turnId: idOf(n), createdAt: "", role: "user", content: "" } as const;
    return { ...said, ...olds[n] };
  });
  const shown = (chosen: Record<number, number> = {}, sought?: number, all = turns) => {
    const choices = Object.entries(chosen).map(([place, n]) => [idOf(Number(place)), idOf(n)] as const);
    return shownTurns(all, messages, new Map(choices), sought === undefined ? undefined : idOf(sought)).map(
      ({ turn, versions }) => {
        const index = versions.indexOf(turn.id);
        return `${turns.indexOf(turn) + 1}${index < 0 ? "" : ` ${index + 1}/${versions.length}`}`;
      },
    );
  };

  it("are the newest, with the number of versions", () => {
    expect(shown()).toEqual(["6 3/3", "7"]);
  });

  it("last up to the turn that began the next version, and have versions inside", () => {
    expect(shown({ 1: 1 })).toEqual(["1 1/3", "2", "7"]);
    expect(shown({ 1: 3 })).toEqual(["3 2/3", "5 2/2", "7"]);
    expect(shown({ 1: 3, 4: 4 })).toEqual(["3 2/3", "4 1/2", "7"]);
    expect(shown({ 1: 6 })).toEqual(["6 3/3", "7"]);
  });

  it("show a turn that a link leads to, until another version is chosen", () => {
    expect(shown({}, 2)).toEqual(["1 1/3", "2", "7"]);
    expect(shown({}, 4)).toEqual(["3 2/3", "4 1/2", "7"]);
    expect(shown({}, 7)).toEqual(["6 3/3", "7"]);
    expect(shown({ 1: 99 }, 2)).toEqual(["6 3/3", "7"]);
  });

  it("count from the oldest loaded version", () => {
    expect(shown({}, undefined, turns.slice(2))).toEqual(["6 2/2", "7"]);
    expect(shown({}, undefined, turns.slice(3))).toEqual(["5 2/2", "6", "7"]);
  });
});

it("turns that later turns replaced are known by their messages", () => {
  const idOf = (n: number) => messageId({ n, stem: "01JD000000000000000" }, 0).replace("msg_", "turn_");
  const [one, two, three, four] = [1, 2, 3, 4].map(idOf) as [string, string, string, string];
  const said = (turnId: string, more: object = {}): MessageView => ({
    ...{ id: turnId, turnId, createdAt: "", role: "user", content: "" },
    ...more,
  });
  const messages = [said(one), said(two), said(three, { regenerates: two })];
  expect([
    ...replacedTurns(
      [one, two, three, four].map((id) => ({ id })),
      messages,
    ),
  ]).toEqual([two]);
});

it("the age of a request is in one unit, and a clock that differs never makes it negative", () => {
  const now = new Date("2026-05-06T12:00:00Z");
  const ago = (minutes: number) => ageText(new Date(now.getTime() - minutes * 60_000).toISOString(), now);
  expect([-5, 0.5, 1, 59.9, 60, 1_439, 1_440, 20_000].map(ago)).toEqual([
    "now",
    "now",
    "1 min",
    "59 min",
    "1 h",
    "23 h",
    "1 d",
    "13 d",
  ]);
});
