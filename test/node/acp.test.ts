/** The updates of ACP for any frames of a conversation, and the content of prompts, held against the official schemas. */
import type { ContentBlock, SessionUpdate } from "@agentclientprotocol/sdk";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { rpcErrorOf } from "../../src/cli/acp-errors.ts";
import { DramatisClientError } from "../../src/client/errors.ts";
import { blocksOf, contentOf, promptOf } from "../../src/compat/acp/prompt.ts";
import { diffsOf, kindOf, titleOf } from "../../src/compat/acp/tool-call.ts";
import { SessionEncoder, stopReasonOf } from "../../src/compat/acp/updates.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { Content } from "../../src/shared/content.ts";
import { check } from "../support/acp-editor.ts";

type Draft = Pick<Frame, "type" | "data"> & { turnId?: string; messageId?: string; operationId?: string };

const ERROR = { code: "CANCELLED", message: "No.", retriable: false };
const EXPIRES = "2026-01-02T00:00:00Z";

function framesOf(drafts: readonly Draft[]): Frame[] {
  // SAFETY: the members of a draft belong together.
  return drafts.map((draft, at) => ({ v: 1, seq: at + 1, time: EXPIRES, ...draft }) as Frame);
}

function updatesOf(drafts: readonly Draft[], encoder = new SessionEncoder("one")): SessionUpdate[] {
  return framesOf(drafts).flatMap((frame) => encoder.push(frame));
}

/** Joins the chunks of each message. */
function textsOf(updates: readonly SessionUpdate[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const update of updates) {
    if (update.sessionUpdate !== "agent_message_chunk" && update.sessionUpdate !== "agent_thought_chunk")
      continue;
    const id = update.messageId ?? "";
    const text = update.content.type === "text" ? update.content.text : "";
    texts.set(id, (texts.get(id) ?? "") + text);
  }
  return texts;
}

interface Reply {
  /** The text before a repetition of the model call, or `null` without a repetition. */
  before: string | null;
  pieces: string[];
  interim: boolean;
  agentId: string;
}

const anyReply: fc.Arbitrary<Reply> = fc.record({
  before: fc.option(fc.string({ maxLength: 6 }), { nil: null }),
  pieces: fc.array(fc.string({ minLength: 1, maxLength: 4 }), { maxLength: 4 }),
  interim: fc.boolean(),
  agentId: fc.constantFrom("one", "two"),
});

/** The frames of a reply. `isReplay`: as from the journal, without text in progress. */
function replyFrames(messageId: string, reply: Reply, isReplay: boolean): Draft[] {
  const { before, pieces, interim, agentId } = reply;
  const delta = (offset: number, text: string): Draft => ({
    type: "message.delta",
    messageId,
    data: { offset, text },
  });
  let offset = 0;
  const deltas = pieces.map((text) => {
    offset += text.length;
    return delta(offset - text.length, text);
  });
  const reset: Draft = { type: "message.reset", messageId, data: { reason: "interrupted" } };
  const lost = before === null ? [] : [...(isReplay || before === "" ? [] : [delta(0, before)]), reset];
  const content = pieces.join("");
  return [
    { type: "message.started", messageId, data: { agentId } },
    ...lost,
    ...(isReplay ? [] : deltas),
    { type: "message.completed", messageId, data: { agentId, content, ...(interim && { interim: true }) } },
  ];
}

interface Work {
  approval: "none" | "approved" | "denied" | "expired";
  asks: ("approved" | "denied" | "open")[];
  end: "completed" | "failed" | "cancelled" | "none";
}

const anyWork: fc.Arbitrary<Work> = fc.record({
  approval: fc.constantFrom("none", "approved", "denied", "expired"),
  asks: fc.array(fc.constantFrom("approved", "denied", "open"), { maxLength: 2 }),
  end: fc.constantFrom("completed", "failed", "cancelled", "none"),
});

function workFrames(operationId: string, { approval, asks, end }: Work): Draft[] {
  const ask = (at: number) => ({
    ...{ operationId: `${operationId}_${at}`, conversationId: "conv_x", agentId: "porter" },
    ...{ name: "lift", input: { path: "a" }, expiresAt: EXPIRES },
  });
  const shown = { name: "lift", input: { path: "a" }, expiresAt: EXPIRES };
  const request: Draft = {
    type: "tool.requested",
    operationId,
    data: { name: "repo_write", input: { path: "a", content: "b" }, async: false },
  };
  const error = { ...ERROR, code: "APPROVAL_DENIED" };
  const approvals: Draft[] =
    approval === "none"
      ? []
      : [
          { type: "approval.requested", operationId, data: shown },
          { type: "approval.resolved", operationId, data: { outcome: approval } },
        ];
  const nested = asks.flatMap((outcome, at): Draft[] => [
    { type: "approval.requested", operationId, data: { ...shown, of: ask(at) } },
    ...(outcome === "open"
      ? []
      : [{ type: "approval.resolved", operationId, data: { outcome, of: ask(at) } } satisfies Draft]),
  ]);
  const ends: Record<Work["end"], Draft[]> = {
    completed: [{ type: "tool.completed", operationId, data: { result: { ok: true } } }],
    failed: [{ type: "tool.failed", operationId, data: { error } }],
    cancelled: [{ type: "tool.cancelled", operationId, data: { error } }],
    none: [],
  };
  return [request, ...approvals, ...nested, ...ends[end]];
}

const anyTurn = fc.record({
  replies: fc.array(anyReply, { maxLength: 3 }),
  works: fc.array(anyWork, { maxLength: 3 }),
  isFailed: fc.boolean(),
});

type Turn = typeof anyTurn extends fc.Arbitrary<infer Value> ? Value : never;

function turnFrames(turnId: string, { replies, works, isFailed }: Turn, isReplay = false): Draft[] {
  const inside = [
    ...replies.map((reply, at) => replyFrames(`${turnId}_m${at}`, reply, isReplay)),
    ...works.map((work, at) => workFrames(`${turnId}_o${at}`, work)),
  ].flat();
  const end: Draft = isFailed
    ? { type: "turn.failed", data: { error: ERROR } }
    : { type: "turn.completed", data: {} };
  const started: Draft = { type: "turn.started", data: { agentId: "one" } };
  return [started, ...inside, end].map((draft) => ({ ...draft, turnId }));
}

/** Mixes two lists, each in its order. */
function mixed(first: readonly Draft[], second: readonly Draft[], picks: readonly boolean[]): Draft[] {
  const [a, b] = [[...first], [...second]];
  const drafts = picks.flatMap((isFirst) => (isFirst ? a : b).splice(0, 1));
  return [...drafts, ...a, ...b];
}

const anyHistory = fc.tuple(anyTurn, anyTurn, fc.array(fc.boolean(), { maxLength: 60 }));

describe("I12 ACP: the updates of any frames", () => {
  test("I12 H9 ACP-3 ACP-4 each update fits the official schema, and a replay has the same texts as the live stream", () => {
    fc.assert(
      fc.property(anyHistory, ([first, second, picks]) => {
        const live = updatesOf(mixed(turnFrames("t1", first), turnFrames("t2", second), picks));
        const replayed = updatesOf(
          mixed(turnFrames("t1", first, true), turnFrames("t2", second, true), picks),
        );
        for (const update of [...live, ...replayed]) expect(check("SessionUpdate", update)).toEqual([]);
        const [texts, again] = [textsOf(live), textsOf(replayed)];
        for (const [turnId, { replies }] of [["t1", first] as const, ["t2", second] as const]) {
          for (const [at, { pieces, before, agentId }] of replies.entries()) {
            const id = `${turnId}_m${at}`;
            const content = pieces.join("");
            const expected = content === "" ? undefined : `${agentId === "two" ? "**two:** " : ""}${content}`;
            expect(again.get(id)).toBe(expected);
            const isOther = texts.has(`${id}_2`);
            if (isOther) expect(content.startsWith(before ?? "")).toBe(false);
            expect(isOther || content !== "" ? texts.get(isOther ? `${id}_2` : id) : undefined).toBe(
              expected,
            );
          }
        }
      }),
      { numRuns: 100 },
    );
    expect(check("SessionUpdate", { sessionUpdate: "agent_message_chunk" })).not.toEqual([]);
  });

  test("I12 ACP-5 ACP-6 a call begins once and ends once, and no request outlives its turn", () => {
    fc.assert(
      fc.property(anyHistory, ([first, second, picks]) => {
        const encoder = new SessionEncoder("one");
        const drafts = mixed(turnFrames("t1", first), turnFrames("t2", second), picks);
        const seen = new Map<string, string[]>();
        const open = new Set<string>();
        for (const frame of framesOf(drafts)) {
          for (const update of encoder.push(frame)) {
            if (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update") continue;
            const { toolCallId, status } = update;
            const states = seen.get(toolCallId) ?? [];
            seen.set(toolCallId, [...states, status ?? "same"]);
            expect(states.length === 0).toBe(update.sessionUpdate === "tool_call");
            expect(states.some((state) => state === "completed" || state === "failed")).toBe(false);
          }
          const id = "of" in frame.data ? frame.data.of?.operationId : frame.operationId;
          if (frame.type === "approval.requested") open.add(id ?? "");
          if (frame.type === "approval.resolved") open.delete(id ?? "");
          for (const asked of encoder.asks.keys()) expect(open.has(asked)).toBe(true);
        }
        for (const states of seen.values()) expect(states.at(-1)).toMatch(/^(?:completed|failed)$/);
        expect([...encoder.asks, ...encoder.active]).toEqual([]);
        expect(encoder.endOf("t1")?.type).toBe(first.isFailed ? "cancelled" : "finished");
      }),
      { numRuns: 500 },
    );
  });

  test("I12 ACP-4 a repeated model call with another text becomes another message", () => {
    const drafts = replyFrames(
      "m",
      { before: "It was ", pieces: ["No ", "one."], interim: false, agentId: "one" },
      false,
    );
    expect([...textsOf(updatesOf(drafts))]).toEqual([
      ["m", "It was "],
      ["m_2", "No one."],
    ]);
  });

  test("I12 ACP-7 a prompt ends when its turn waits for background work, and its call ends later", () => {
    const encoder = new SessionEncoder("one");
    const drafts = turnFrames("t1", {
      replies: [],
      works: [{ approval: "none", asks: [], end: "none" }],
      isFailed: false,
    });
    const waiting: Draft = { type: "turn.waiting", turnId: "t1", data: { reason: "operations" } };
    updatesOf([...drafts.slice(0, -1), waiting], encoder);
    expect(encoder.endOf("t1")).toEqual({ type: "waits" });
    expect([...encoder.active]).toEqual(["t1"]);
    const asks = new SessionEncoder("one");
    updatesOf([...drafts.slice(0, -1), { ...waiting, data: { reason: "approval" } }], asks);
    expect(asks.endOf("t1")).toBeUndefined();
  });

  test("I12 ACP-3 shows messages of other senders and new titles, and no prompt of the session itself", () => {
    const encoder = new SessionEncoder("one");
    encoder.sent("own");
    const user = (clientId: string, agentId?: string): Draft => ({
      type: "message.user",
      messageId: clientId,
      data: { clientId, content: `From ${clientId}`, ...(agentId !== undefined && { agentId }) },
    });
    const text = (messageId: string, shown: string) => ({
      sessionUpdate: "user_message_chunk",
      messageId,
      content: { type: "text", text: shown },
    });
    const titled: Draft = { type: "conversation.updated", data: { title: "Trains" } };
    expect(updatesOf([user("own"), user("other"), user("called", "boss"), titled], encoder)).toEqual([
      text("other", "From other"),
      text("called", "**boss:** "),
      text("called", "From called"),
      { sessionUpdate: "session_info_update", title: "Trains", updatedAt: EXPIRES },
    ]);
  });

  test("I12 ACP-3 interim text of a replay is a thought; streamed text stays a message", () => {
    const reply = { before: null, pieces: ["Let me look."], interim: true, agentId: "one" };
    const kinds = (isReplay: boolean) =>
      updatesOf(replyFrames("m", reply, isReplay)).map(({ sessionUpdate }) => sessionUpdate);
    expect(kinds(true)).toEqual(["agent_thought_chunk"]);
    expect(kinds(false)).toEqual(["agent_message_chunk"]);
  });

  test("I12 ACP-3 the stop reason follows from the finish reason", () => {
    expect(["stop", "length", "content_filter", undefined].map(stopReasonOf)).toEqual([
      ...["end_turn", "max_tokens", "refusal", "end_turn"],
    ]);
  });
});

describe("I12 ACP: calls and prompts", () => {
  test("I12 ACP-2 a call has its kind, its title and its diff", () => {
    const kinds = ["repo_read", "repo_edit", "shell_exec", "repo_search", "artifact_delete", "calculator"];
    expect(kinds.map(kindOf)).toEqual(["read", "edit", "execute", "search", "delete", "other"]);
    expect(titleOf("repo_read", { path: "src/a.ts" })).toBe("repo_read src/a.ts");
    expect(titleOf("shell_exec", { command: `echo ${"x".repeat(100)}` })).toHaveLength(
      "shell_exec ".length + 80,
    );
    expect(diffsOf("repo_write", { path: "a.txt", content: "New." })).toEqual([
      { type: "diff", path: "/a.txt", oldText: null, newText: "New." },
    ]);
    expect(diffsOf("repo_edit", { path: "a.txt", before: "Old", after: "New" })).toEqual([
      { type: "diff", path: "/a.txt", oldText: "Old", newText: "New" },
    ]);
    expect(diffsOf("repo_read", { path: "a.txt", content: "New." })).toEqual([]);
  });

  test("I12 ACP-1 a prompt keeps the order of its text, and names its links and resources", () => {
    const uri = "file:///project/a.ts";
    const prompt = promptOf([
      { type: "text", text: "Explain " },
      { type: "resource_link", name: "b.ts", uri: "file:///project/b.ts" },
      { type: "text", text: " and " },
      { type: "resource", resource: { uri, text: "let a;" } },
      { type: "text", text: "." },
      { type: "image", data: "aGk=", mimeType: "image/png" },
      { type: "resource", resource: { uri: "file:///c.pdf", blob: "aGk=", mimeType: "application/pdf" } },
    ]);
    expect(prompt).toEqual({
      texts: [
        {
          type: "text",
          text: `Explain [b.ts](file:///project/b.ts) and [a.ts](${uri}).[c.pdf](file:///c.pdf)`,
        },
        { type: "text", text: `Content of ${uri}:\n\nlet a;` },
      ],
      media: [
        { type: "image", data: "aGk=", mediaType: "image/png" },
        { type: "file", data: "aGk=", mediaType: "application/pdf", name: "c.pdf" },
      ],
      untrusted: true,
    });
    const plain = promptOf([{ type: "text", text: "Hello" }]);
    expect([plain.untrusted, contentOf(plain, [])]).toEqual([undefined, "Hello"]);
    const texts = ["One.", "Two."].map((text) => ({ type: "text" as const, text }));
    expect(contentOf(promptOf(texts), [])).toBe("One.\n\nTwo.");
    expect(() => promptOf([{ type: "audio", data: "", mimeType: "audio/wav" }])).toThrow(/"audio"/);
  });

  test("I12 ACP-1 each content of a message becomes blocks that fit the official schema, with all its text", () => {
    const text = fc.record({ type: fc.constant("text" as const), text: fc.string() });
    const media = fc.record(
      {
        type: fc.constantFrom("image" as const, "file" as const),
        url: fc.constantFrom("attachment:att_1", "https://example.com/a", "data:image/png;base64,aGk="),
        mediaType: fc.string(),
        name: fc.string(),
      },
      { requiredKeys: ["type", "url"] },
    );
    const anyContent: fc.Arbitrary<Content> = fc.oneof(fc.string(), fc.array(fc.oneof(text, media)));
    fc.assert(
      fc.property(anyContent, (content) => {
        const blocks: ContentBlock[] = blocksOf(content);
        for (const block of blocks) expect(check("ContentBlock", block)).toEqual([]);
        const texts = blocks.flatMap((block) => (block.type === "text" ? [block.text] : []));
        const own =
          typeof content === "string"
            ? [content]
            : content.flatMap((part) => (part.type === "text" ? [part.text] : []));
        expect(texts).toEqual(own);
      }),
    );
  });

  test("I12 ACP-8 an error of a request says what to change", () => {
    const failed = (code: string, status = 400) =>
      rpcErrorOf(new DramatisClientError({ code, status, detail: "Wrong." }), "http://localhost:1");
    expect(failed("UNAUTHENTICATED", 401)).toMatchObject({
      code: -32000,
      message: expect.stringContaining("DRAMATIS_TOKEN"),
    });
    expect(failed("NETWORK", 0)).toMatchObject({
      code: -32603,
      message: expect.stringContaining("http://localhost:1"),
    });
    expect(failed("NOT_FOUND", 404)).toMatchObject({ code: -32002, data: { code: "NOT_FOUND" } });
    expect(rpcErrorOf(new TypeError("x is undefined"), "http://localhost:1")).toMatchObject({
      message: expect.stringContaining("not as a Dramatis server"),
    });
  });
});
