/** The contract of the pure functions over events, in any runtime. */
import { expect, it } from "vitest";
import { workersAIAdapter } from "../../src/adapters/formats/workers-ai/adapter.ts";
import { dehydrateEvent, hydrateEvent } from "../../src/memory/session/event-rows.ts";
import { eventToMessage, messageToEvent } from "../../src/memory/session/events.ts";
import { EventAction, type StoredEvent } from "../../src/memory/session/session-event.ts";
import { buildWorkingContext, WorkingContext } from "../../src/memory/session/working-context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import { agent, compaction, everyAction, numbered, request, result, user } from "./events.ts";

const row = (fields: Partial<StoredEvent>): StoredEvent => ({
  id: "e",
  session_id: "s",
  seq: 3,
  action: "user_message",
  content: "text",
  metadata: null,
  created_at: 5,
  ...fields,
});

const contents = (messages: readonly ContextMessage[]) => messages.map(({ content }) => content);

/** Registers the tests. */
export function eventFunctionsContract(): void {
  it.each(everyAction())("M8 EVENT-1 $action survives a round trip through a row", (event) => {
    const stored = dehydrateEvent(event);
    expect(stored).toMatchObject({ id: event.id, session_id: "s", seq: event.seq, action: event.action });
    expect(hydrateEvent(stored)).toEqual(event);
  });

  it("M8 plain events have no metadata in their row, and null content reads as empty", () => {
    for (const event of [user("u"), agent("a")]) expect(dehydrateEvent(event).metadata).toBeNull();
    expect(hydrateEvent(row({ content: null }))).toEqual({
      id: "e",
      sessionId: "s",
      seq: 3,
      action: EventAction.USER_MESSAGE,
      content: "",
      timestamp: 5,
    });
  });

  it.each(["null", "[]", "{}", "not json", '"text"'])(
    "M8 metadata %s gives every action its defaults",
    (metadata) => {
      for (const text of [metadata, null]) {
        const read = (action: EventAction) => hydrateEvent(row({ action, metadata: text }));
        expect(read(EventAction.TOOL_CALL_REQUEST)).toMatchObject({ toolCalls: [] });
        expect(read(EventAction.TOOL_RESULT)).toMatchObject({
          toolCallId: "",
          toolName: "",
          isSuccess: true,
        });
        expect(read(EventAction.COMPACTION)).toMatchObject({ compactedEventCount: 0 });
        expect(read(EventAction.AGENT_MESSAGE)).not.toHaveProperty("model");
      }
    },
  );

  it("M8 metadata of the wrong shape is read as far as possible", () => {
    const metadata = JSON.stringify({
      toolCalls: [1, { id: 7, name: "n", arguments: "x" }],
      model: 3,
      metadata: [],
    });
    expect(hydrateEvent(row({ action: EventAction.TOOL_CALL_REQUEST, metadata }))).toEqual(
      expect.objectContaining({ toolCalls: [{ id: "", name: "n", arguments: {} }] }),
    );
    const negative = JSON.stringify({ compactedEventCount: -1 });
    expect(hydrateEvent(row({ action: EventAction.COMPACTION, metadata: negative }))).toMatchObject({
      compactedEventCount: 0,
    });
  });

  it("M8 EVENT-2 an unknown action stays inert, keeps its row and reaches no model, even with a mapper", () => {
    const stored = row({
      action: "root_override",
      content: "obey",
      metadata: '{"model":"x","metadata":{"k":1}}',
    });
    const event = hydrateEvent(stored);
    expect(event).toMatchObject({
      action: "unknown",
      storedAction: "root_override",
      content: "obey",
      metadata: { model: "x", metadata: { k: 1 } },
    });
    expect(dehydrateEvent(event)).toEqual(stored);
    expect(dehydrateEvent(hydrateEvent(row({ action: "later" })))).toEqual(row({ action: "later" }));
    expect(eventToMessage(event)).toBeNull();
    const everything = (): ContextMessage => ({ role: "system", content: "leaked" });
    expect(buildWorkingContext([event], { eventToMessage: everything }).messages).toEqual([]);
  });

  it("M11 the six actions map to messages; a request without calls becomes its text, or no message", () => {
    const [said, answered, requested, answeredTool, instructed, compacted] =
      everyAction().map(eventToMessage);
    expect(said).toEqual({
      role: "user",
      content: "hello",
      metadata: { origin: "user", nested: { model: "not a model" } },
    });
    expect(answered).toEqual({
      role: "assistant",
      content: "hi",
      metadata: { usage: { inputTokens: 3 }, model: "m-1" },
    });
    expect(requested).toMatchObject({
      role: "assistant",
      content: "let me look",
      toolCalls: [{ id: "c1" }, { id: "c2" }],
    });
    expect(answeredTool).toEqual({
      role: "tool",
      content: "no such thing",
      toolCallId: "c1",
      name: "search",
      metadata: { origin: "tool", isSuccess: false },
    });
    expect(instructed).toMatchObject({ role: "system", content: "be brief" });
    expect(compacted).toMatchObject({ role: "system", content: "what was said" });
    expect(eventToMessage(user("u", "plain"))).toEqual({ role: "user", content: "plain" });
    expect(eventToMessage(request("r"))).toBeNull();
    expect(eventToMessage({ ...request("r"), content: "hm" })).toEqual({ role: "assistant", content: "hm" });
  });

  it.each(everyAction())("M10 M12 EVENT-3 $action survives a round trip through a message", (event) => {
    const message = eventToMessage(event);
    expect(message).not.toBeNull();
    const { id, timestamp } = event;
    if (message !== null) {
      expect(messageToEvent("s", message, { id, timestamp })).toEqual({ ...event, seq: 0 });
    }
  });

  it("M12 messages of each kind become events with fresh ids and a placeholder for their number", () => {
    const messages: [ContextMessage, string][] = [
      [{ role: "user", content: "u" }, EventAction.USER_MESSAGE],
      [{ role: "assistant", content: "a" }, EventAction.AGENT_MESSAGE],
      [{ role: "assistant", content: "a", toolCalls: [] }, EventAction.AGENT_MESSAGE],
      [
        { role: "assistant", content: "", toolCalls: [{ id: "1", name: "n", arguments: {} }] },
        EventAction.TOOL_CALL_REQUEST,
      ],
      [{ role: "tool", content: "r", toolCallId: "1", name: "n" }, EventAction.TOOL_RESULT],
      [{ role: "system", content: "s" }, EventAction.SYSTEM_INSTRUCTION],
      [{ role: "system", content: "s", metadata: { compactedEventCount: 4 } }, EventAction.COMPACTION],
    ];
    const before = Date.now();
    const events = messages.map(([message]) => messageToEvent("session", message));
    expect(events.map(({ action }) => action)).toEqual(messages.map(([, action]) => action));
    expect(new Set(events.map(({ id }) => id)).size).toBe(messages.length);
    for (const event of events) {
      expect(event).toMatchObject({ sessionId: "session", seq: 0 });
      expect(event).not.toHaveProperty("metadata");
      expect(Number.isSafeInteger(event.timestamp)).toBe(true);
      expect(event.timestamp).toBeGreaterThanOrEqual(before);
    }
    expect(events[4]).toMatchObject({ toolCallId: "1", toolName: "n", isSuccess: true });
  });

  it("M12 EVENT-3 the speaker survives a round trip through an event", () => {
    const messages: ContextMessage[] = [
      { role: "user", content: "hi", name: "ada" },
      { role: "assistant", content: "hi", name: "bob", metadata: { model: "m" } },
      { role: "system", content: "hi", name: "host", metadata: { k: 1 } },
      { role: "user", content: "hi", metadata: { name: 7 } },
      { role: "tool", content: "hi", toolCallId: "c", name: "search", metadata: { name: "file" } },
    ];
    for (const message of messages) expect(eventToMessage(messageToEvent("s", message))).toEqual(message);
  });

  it("M12 metadata of another kind is kept unchanged", () => {
    const kept = { model: "m", isSuccess: false, compactedEventCount: 2 };
    expect(messageToEvent("s", { role: "user", content: "", metadata: kept })).toMatchObject({
      metadata: kept,
    });
    const odd = { model: 3, isSuccess: "no", compactedEventCount: -1 };
    for (const role of ["assistant", "tool", "system"] as const) {
      expect(messageToEvent("s", { role, content: "", metadata: odd })).toMatchObject({ metadata: odd });
    }
  });

  it("M13 CTX-3 a context returns only its own content, and keeps no reference to given arrays", () => {
    const messages: ContextMessage[] = [{ role: "user", content: "old" }];
    const instructions = ["be kind"];
    const context = new WorkingContext(instructions, messages);
    messages.push({ role: "user", content: "sneaked in" });
    instructions.push("be rude");
    expect(context.messages).toEqual([{ role: "user", content: "old" }]);
    expect(context.systemInstructions).toEqual(["be kind"]);
    expect(context.getNewMessages()).toEqual([]);
    context.addMessage({ role: "user", content: "new" });
    context.getNewMessages().push({ role: "user", content: "lost" });
    expect(context.getNewMessages()).toEqual([{ role: "user", content: "new" }]);
    expect(contents(context.messages)).toEqual(["old", "new"]);
    context.markPersisted();
    expect(context.getNewMessages()).toEqual([]);
    expect(contents(context.messages)).toEqual(["old", "new"]);
  });

  it("M14 CTX-3 a context is built without changing the events", () => {
    const events = numbered([user("q"), request("r", "c"), result("t", "c"), agent("a")]);
    const copy = structuredClone(events);
    const context = buildWorkingContext(events, { systemInstructions: ["one", "two"] });
    expect(context.systemInstructions).toEqual(["one", "two"]);
    expect(contents(context.messages)).toEqual(["q", "", "t", "a"]);
    expect(context.getNewMessages()).toEqual([]);
    expect(events).toEqual(copy);
    expect(buildWorkingContext([]).messages).toEqual([]);
  });

  it("M15 a custom mapper decides the text of an event, and whether it is sent", () => {
    const context = buildWorkingContext(numbered([user("secret"), user("open"), agent("answer")]), {
      eventToMessage: (event) =>
        event.content === "secret" ? null : { role: "user", content: `${event.action}: ${event.content}` },
    });
    expect(contents(context.messages)).toEqual(["user_message: open", "agent_message: answer"]);
  });

  it("M20 CTX-1 a window never begins with a result without its request", () => {
    const session = numbered([
      user("q"),
      request("r", "c1", "c2"),
      result("t1", "c1"),
      result("t2", "c2"),
      agent("a"),
    ]);
    const sent = (from: number) => contents(buildWorkingContext(session.slice(from)).messages);
    expect(sent(0)).toEqual(["q", "", "t1", "t2", "a"]);
    expect(sent(1)).toEqual(["", "t1", "t2", "a"]);
    expect(sent(2)).toEqual(["a"]);
    expect(sent(3)).toEqual(["a"]);
  });

  it("M20 CTX-1 a request without all of its results is not sent, and neither are its results", () => {
    const sent = (...events: Parameters<typeof numbered>[0]) =>
      contents(buildWorkingContext(numbered(events)).messages);
    expect(sent(user("q"), request("r", "c1", "c2"), result("t1", "c1"))).toEqual(["q"]);
    expect(sent(user("q"), request("r", "c1"))).toEqual(["q"]);
    expect(sent(result("t", ""), user("q"))).toEqual(["q"]);
  });

  it("M20 CTX-1 results follow their request directly, each once, and ids may be used again", () => {
    const sent = (...events: Parameters<typeof numbered>[0]) =>
      contents(buildWorkingContext(numbered(events)).messages);
    expect(
      sent(
        request("r", "c1", "c2"),
        result("t2", "c2"),
        agent("meanwhile"),
        user("and?"),
        result("t1", "c1"),
      ),
    ).toEqual(["", "t2", "t1", "meanwhile", "and?"]);
    expect(sent(request("r", "c"), result("t", "c"), result("again", "c"), agent("a"))).toEqual([
      "",
      "t",
      "a",
    ]);
    const twice = [request("r1", "c"), result("t1", "c"), request("r2", "c"), result("t2", "c")];
    expect(sent(...twice)).toEqual(["", "t1", "", "t2"]);
    expect(sent(request("lost", "c"), request("r", "c"), result("t", "c"), result("late", "c"))).toEqual([
      "",
      "t",
    ]);
    expect(sent(request("r", "c", "c"), result("t1", "c"), result("t2", "c"))).toEqual(["", "t1", "t2"]);
  });

  it("M22 CTX-2 a compaction's summary is sent as a system message in place of the events it covers", () => {
    const session = numbered([
      user("q1"),
      agent("a1"),
      user("q2"),
      agent("a2"),
      compaction("k", 3),
      user("q3"),
    ]);
    const { messages } = buildWorkingContext(session);
    expect(messages.map(({ role, content }) => [role, content])).toEqual([
      ["system", "summary k"],
      ["assistant", "a2"],
      ["user", "q3"],
    ]);
  });

  it("M22 CTX-2 a count reaches no further than the compaction, and counts from the session's start in any window", () => {
    const session = numbered([
      user("q1"),
      agent("a1"),
      user("q2"),
      agent("a2"),
      compaction("k", 3),
      user("q3"),
    ]);
    const window = (from: number) => contents(buildWorkingContext(session.slice(from)).messages);
    expect(window(1)).toEqual(["summary k", "a2", "q3"]);
    expect(window(3)).toEqual(["summary k", "a2", "q3"]);
    expect(window(4)).toEqual(["summary k", "q3"]);
    expect(window(5)).toEqual(["q3"]);
    const greedy = numbered([user("q1"), compaction("k", 100), user("q2"), agent("a2")]);
    expect(contents(buildWorkingContext(greedy).messages)).toEqual(["summary k", "q2", "a2"]);
    const none = numbered([user("q1"), compaction("k", 0)]);
    expect(contents(buildWorkingContext(none).messages)).toEqual(["q1", "summary k"]);
  });

  it("M22 CTX-2 a later compaction covers an earlier compaction; uncovered events stay", () => {
    const covering = numbered([
      user("q1"),
      agent("a1"),
      compaction("k1", 2),
      user("q2"),
      compaction("k2", 4),
      user("q3"),
    ]);
    expect(contents(buildWorkingContext(covering).messages)).toEqual(["summary k2", "q3"]);
    const apart = numbered([
      user("q1"),
      agent("a1"),
      compaction("k1", 1),
      user("q2"),
      compaction("k2", 2),
      user("q3"),
    ]);
    expect(contents(buildWorkingContext(apart).messages)).toEqual(["summary k1", "summary k2", "q2", "q3"]);
  });

  it("M22 CTX-2 events that were never stored are counted by their place", () => {
    const fresh = [user("q1"), agent("a1"), compaction("k", 1), user("q2")];
    expect(contents(buildWorkingContext(fresh).messages)).toEqual(["summary k", "a1", "q2"]);
  });

  it("M22 M20 a compaction that covers a request also removes its results", () => {
    const session = numbered([
      user("q"),
      request("r", "c"),
      result("t", "c"),
      agent("a"),
      compaction("k", 2),
    ]);
    expect(contents(buildWorkingContext(session).messages)).toEqual(["summary k", "a"]);
  });

  it("M9 M18 a context becomes Workers AI messages: one system message, calls as functions, no stray keys", () => {
    const [, , requested, failed] = everyAction();
    const events = [user("q"), requested, failed, result("t2", "c2", "noon"), agent("a")].filter(
      (event) => event !== undefined,
    );
    const context = buildWorkingContext(numbered(events), { systemInstructions: ["Be kind.", "Be brief."] });
    expect(workersAIAdapter.name).toBe("workers-ai");
    expect(workersAIAdapter.toModelMessages(context.systemInstructions, context.messages)).toStrictEqual({
      messages: [
        { role: "system", content: "Be kind.\n\nBe brief." },
        { role: "user", content: "q" },
        {
          role: "assistant",
          content: "let me look",
          tool_calls: [
            {
              id: "c1",
              type: "function",
              function: { name: "search", arguments: '{"query":"x","deep":[{"y":null}]}' },
            },
            { id: "c2", type: "function", function: { name: "now", arguments: "{}" } },
          ],
        },
        { role: "tool", content: "no such thing", name: "search", tool_call_id: "c1" },
        { role: "tool", content: "noon", name: "search", tool_call_id: "c2" },
        { role: "assistant", content: "a" },
      ],
    });
    expect(workersAIAdapter.toModelMessages([], [{ role: "user", content: "q" }])).toStrictEqual({
      messages: [{ role: "user", content: "q" }],
    });
  });
}
