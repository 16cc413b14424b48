/** Sessions, events and contexts on Node, and properties of all of them. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dehydrateEvent, hydrateEvent } from "../../src/memory/session/event-rows.ts";
import { EventStore } from "../../src/memory/session/event-store.ts";
import { eventToMessage, messageToEvent } from "../../src/memory/session/events.ts";
import { LongText } from "../../src/memory/session/long-text.ts";
import { isPaired, pairedOrder } from "../../src/memory/session/pairs.ts";
import { EventAction, type SessionEvent } from "../../src/memory/session/session-event.ts";
import { buildWorkingContext } from "../../src/memory/session/working-context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { Facts } from "../../src/shared/json.ts";
import { fitsUtf8, splitUtf8, utf8Length } from "../../src/shared/utf8.ts";
import { eventFunctionsContract } from "../support/event-functions-contract.ts";
import { eventStoreContract } from "../support/event-store-contract.ts";
import { jsonValues, memberNames } from "../support/json-values.ts";
import type { WithPorts } from "../support/port-contract.ts";
import { sessionStoreContract } from "../support/session-store-contract.ts";

const pairedMessages = (messages: readonly ContextMessage[]) =>
  pairedOrder(messages).flatMap((index) => messages[index] ?? []);

describe("functions over events", () => eventFunctionsContract());

const onNode: WithPorts = async (body) => {
  const db = new NodeSqlDatabase();
  try {
    await body({ db, kv: new NodeKeyValue(db) });
  } finally {
    db.close();
  }
};

describe("stores on node:sqlite", () => {
  eventStoreContract(onNode);
  sessionStoreContract(onNode);
});

const text = fc.string({ unit: "binary", maxLength: 60 });
/** JSON after a round trip: the values of `-0` and of a member called `__proto__` are JSON's matter. */
const json = jsonValues({ maxDepth: 3 }).map((value): unknown => JSON.parse(JSON.stringify(value)));
// SAFETY: the members are JSON values by construction.
const facts = fc.dictionary(memberNames({ maxLength: 10 }), json, {
  noNullPrototype: true,
}) as fc.Arbitrary<Facts>;
const reserved = ["model", "isSuccess", "compactedEventCount"];
const plainFacts = facts.filter(
  (value) => Object.keys(value).length > 0 && !reserved.some((key) => key in value),
);
const optional = { requiredKeys: ["id", "sessionId", "seq", "content", "timestamp", "action"] as const };

function anyEvent(metadata: fc.Arbitrary<Facts>): fc.Arbitrary<SessionEvent> {
  const base = {
    id: fc.string({ minLength: 1, maxLength: 20 }),
    sessionId: fc.constant("s"),
    seq: fc.nat(),
    content: text,
    timestamp: fc.nat(2 ** 45),
  };
  const call = fc.record({ id: text, name: text, arguments: facts });
  const withMetadata = <Event>(event: fc.Arbitrary<Event>): fc.Arbitrary<Event> =>
    fc.tuple(event, fc.option(metadata, { nil: undefined })).map(([value, extra]) => ({
      ...value,
      ...(extra === undefined ? {} : { metadata: extra }),
    }));
  return withMetadata(
    fc.oneof(
      fc.record({ ...base, action: fc.constant(EventAction.USER_MESSAGE as const) }),
      fc.record({ ...base, action: fc.constant(EventAction.SYSTEM_INSTRUCTION as const) }),
      fc.record(
        { ...base, action: fc.constant(EventAction.AGENT_MESSAGE as const), model: text },
        { requiredKeys: [...optional.requiredKeys] },
      ),
      fc.record({
        ...base,
        action: fc.constant(EventAction.TOOL_CALL_REQUEST as const),
        toolCalls: fc.array(call, { minLength: 1, maxLength: 3 }),
      }),
      fc.record({
        ...base,
        action: fc.constant(EventAction.TOOL_RESULT as const),
        toolCallId: text,
        toolName: text,
        isSuccess: fc.boolean(),
      }),
      fc.record({
        ...base,
        action: fc.constant(EventAction.COMPACTION as const),
        compactedEventCount: fc.nat(),
      }),
    ),
  );
}

describe("properties of any event", () => {
  it("EVENT-1 a row restores the event unchanged", () => {
    fc.assert(
      fc.property(anyEvent(facts), (event) => {
        expect(hydrateEvent(dehydrateEvent(event))).toEqual(event);
      }),
    );
  });

  it("EVENT-3 a message restores the event, except its number", () => {
    fc.assert(
      fc.property(anyEvent(plainFacts), (event) => {
        const message = eventToMessage(event);
        fc.pre(message !== null);
        const { id, timestamp } = event;
        expect(messageToEvent("s", message, { id, timestamp })).toEqual({ ...event, seq: 0 });
      }),
    );
  });

  it("EVENT-3 a row restores a user's content and the parts of a reply, whatever they are", () => {
    const origin = { id: "e", timestamp: 1 };
    const word = fc
      .string({ minLength: 1, maxLength: 12, unit: "grapheme" })
      .map((text) => text.toWellFormed());
    const media = fc.record(
      {
        type: fc.constantFrom("image" as const, "file" as const),
        source: fc.record({ url: word }),
        mediaType: word,
        name: word,
      },
      { requiredKeys: ["type", "source"] },
    );
    const text = fc.record({ type: fc.constant("text" as const), text: word });
    const sent = fc.tuple(
      fc.array(fc.oneof(text, media), { maxLength: 4 }),
      media,
      fc.array(text, { maxLength: 2 }),
    );
    const extra = fc.dictionary(word, fc.oneof(word, fc.nat(), fc.boolean()), { maxKeys: 2 });
    const native = fc.record({
      provider: word,
      modelId: word,
      parts: fc.array(
        fc.oneof(
          fc.record(
            { type: fc.constant("text" as const), length: fc.nat(), extra },
            { requiredKeys: ["type", "length"] },
          ),
          fc.record({ type: fc.constant("block" as const), value: extra }),
        ),
      ),
    });
    fc.assert(
      fc.property(sent, native, word, ([before, one, after], own, content) => {
        const user: ContextMessage = { role: "user", content, parts: [...before, one, ...after] };
        const reply: ContextMessage = { role: "assistant", content, native: own };
        for (const message of [user, reply]) {
          const event = messageToEvent("s", message, origin);
          const { metadata: _parts, ...again } = eventToMessage(hydrateEvent(dehydrateEvent(event))) ?? {};
          expect(again).toEqual(message);
        }
      }),
    );
  });

  it("EVENT-3 a reply keeps its native form, and metadata that only looks like a native form stays metadata", () => {
    const origin = { id: "e", timestamp: 1 };
    const native = {
      provider: "anthropic",
      modelId: "m",
      parts: [
        { type: "block" as const, value: { thinking: "…", signature: "s" } },
        { type: "text" as const, length: 2 },
        { type: "tool-call" as const, index: 0, extra: { id: "x" } },
      ],
    };
    for (const toolCalls of [[], [{ id: "c", name: "t", arguments: {} }]]) {
      const calls = toolCalls.length === 0 ? {} : { toolCalls };
      const message: ContextMessage = { role: "assistant", content: "Hi", name: "Ada", native, ...calls };
      const event = messageToEvent("s", message, origin);
      expect(event.metadata).toEqual({ name: "Ada", native });
      expect(eventToMessage(hydrateEvent(dehydrateEvent(event)))).toEqual(message);
    }
    for (const other of ["yes", { ...native, parts: [{ type: "text", length: -1 }] }, { parts: [] }]) {
      const event = { ...origin, sessionId: "s", seq: 0, content: "Hi", metadata: { native: other } };
      const message = eventToMessage({ ...event, action: EventAction.AGENT_MESSAGE });
      expect(message).toEqual({ role: "assistant", content: "Hi", metadata: { native: other } });
    }
  });

  it("EVENTS-1 EVENTS-2 events that are appended in any batches are loaded in order, exactly", () => {
    const batches = fc.array(fc.array(anyEvent(facts), { maxLength: 8 }), { maxLength: 5 });
    fc.assert(
      fc.property(batches, (given) => {
        const db = new NodeSqlDatabase();
        const store = new EventStore(db, new LongText(db));
        store.createTable();
        let next = 0;
        for (const batch of given) {
          store.append("s", next, batch);
          next += batch.length;
        }
        expect(store.load("s")).toEqual(given.flat().map((event, seq) => ({ ...event, seq })));
        db.close();
      }),
    );
  });
});

describe("properties of any context", () => {
  const id = fc.constantFrom("a", "b", "c");
  const message: fc.Arbitrary<ContextMessage> = fc.oneof(
    fc.record({
      role: fc.constantFrom("user" as const, "assistant" as const, "system" as const),
      content: text,
    }),
    fc.record({ role: fc.constant("tool" as const), content: text, toolCallId: id }),
    fc.record({
      role: fc.constant("assistant" as const),
      content: text,
      toolCalls: fc
        .uniqueArray(id, { minLength: 1, maxLength: 2 })
        .map((callIds) => callIds.map((callId) => ({ id: callId, name: "n", arguments: {} }))),
    }),
  );

  it("CTX-1 each request is followed by exactly its results, and every result follows its request", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 30 }), (messages) => {
        const paired = pairedMessages(messages);
        let due: string[] = [];
        for (const { role, toolCallId, toolCalls } of paired) {
          if (role === "tool") {
            expect(due).toContain(toolCallId);
            due = due.filter((callId) => callId !== toolCallId);
          } else {
            expect(due).toEqual([]);
            due = (toolCalls ?? []).map((call) => call.id);
          }
        }
        expect(due).toEqual([]);
      }),
    );
  });

  it("CTX-1 complete pairs in the right order are unchanged, and pairing is idempotent", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 30 }), (messages) => {
        const paired = pairedMessages(messages);
        expect(pairedMessages(paired)).toEqual(paired);
        expect(isPaired(paired)).toBe(true);
        if (isPaired(messages)) expect(paired).toEqual(messages);
        const others = ({ role, toolCalls }: ContextMessage) => role !== "tool" && toolCalls === undefined;
        expect(paired.filter(others)).toEqual(messages.filter(others));
      }),
    );
  });

  it("PAIR-1 a result belongs to the newest earlier request with its id", () => {
    const request = (content: string): ContextMessage => ({
      role: "assistant",
      content,
      toolCalls: [{ id: "a", name: "n", arguments: {} }],
    });
    const result: ContextMessage = { role: "tool", content: "done", toolCallId: "a" };
    const [older, newer] = [request("older"), request("newer")];
    expect(pairedMessages([older, newer, result])).toEqual([newer, result]);
    expect(pairedMessages([result, older])).toEqual([]);
    expect(pairedMessages([older, result, newer, result])).toEqual([older, result, newer, result]);
  });

  it("CTX-1 for a request with a duplicate id, its results decide whether it is in order", () => {
    const call = { id: "a", name: "n", arguments: {} };
    const twice: ContextMessage[] = [
      { role: "assistant", content: "", toolCalls: [call, call] },
      { role: "tool", content: "one", toolCallId: "a" },
    ];
    expect(isPaired(twice)).toBe(false);
    expect(pairedMessages(twice)).toEqual([]);
    expect(pairedMessages([...twice, { role: "tool", content: "two", toolCallId: "a" }])).toHaveLength(3);
  });

  it("CTX-2 no event below a compaction's count is sent, whatever the window", () => {
    const shape = fc.array(fc.option(fc.nat(12), { freq: 4, nil: undefined }), { maxLength: 12 });
    fc.assert(
      fc.property(shape, fc.nat(12), (counts, from) => {
        const events = counts.map((count, seq): SessionEvent => {
          const base = { id: `${seq}`, sessionId: "s", seq, content: `${seq}`, timestamp: 0 };
          return count === undefined
            ? { ...base, action: EventAction.USER_MESSAGE }
            : { ...base, action: EventAction.COMPACTION, compactedEventCount: count };
        });
        const window = events.slice(from);
        const covered = Math.max(
          0,
          ...window.map((event) =>
            event.action === EventAction.COMPACTION ? Math.min(event.compactedEventCount, event.seq) : 0,
          ),
        );
        const sent = buildWorkingContext(window).messages.map(({ content }) => Number(content));
        expect([...sent].sort((a, b) => a - b)).toEqual(
          window.map(({ seq }) => seq).filter((seq) => seq >= covered),
        );
      }),
    );
  });
});

describe("sizes of text", () => {
  it("counts bytes as UTF-8 does, halves of characters included", () => {
    const unit = fc.oneof(fc.nat(0x7f), fc.nat(0xffff), fc.integer({ min: 0xd800, max: 0xdfff }));
    const anyText = fc.array(unit, { maxLength: 50 }).map((units) => String.fromCharCode(...units));
    fc.assert(
      fc.property(anyText, fc.constantFrom(1, 40), (value, times) => {
        const repeated = value.repeat(times);
        expect(utf8Length(repeated)).toBe(new TextEncoder().encode(repeated).byteLength);
      }),
    );
  });

  it("LONG-3 cuts text into pieces that fit and add up", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 300 }),
        fc.integer({ min: 4, max: 40 }),
        (value, limit) => {
          const bytes = new TextEncoder().encode(value).byteLength;
          expect(utf8Length(value)).toBe(bytes);
          expect(fitsUtf8(value, limit)).toBe(bytes <= limit);
          const pieces = [...splitUtf8(value, limit)];
          expect(pieces.join("")).toBe(value);
          for (const piece of pieces) {
            expect(piece).not.toBe("");
            expect(utf8Length(piece)).toBeLessThanOrEqual(limit);
            expect(piece.isWellFormed()).toBe(true);
          }
        },
      ),
    );
  });
});
