/** Traces on the real Worker: one over all actors, with the spans that a collector gets. */
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import type { SpanRecord } from "../support/provider-script.ts";
import { Play, spansOf } from "./provider.ts";
import {
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  request,
  type TestConversation,
} from "./world.ts";

let helper: string;
let lead: string;
let manager: string;
let buyer: string;

const identity = (systemPrompt: string) => ({ systemPrompt, modelProfileId: "test/scripted" });

/** Posts a tool that an agent answers; returns its reference. */
async function askTool(id: string, agent: string, more: object = {}): Promise<string> {
  const body = { id, name: id, description: "Asks an agent.", target: { agent }, ...more };
  const response = await request("/api/libraries/traced/tools", {
    method: "POST",
    body: JSON.stringify(body),
  });
  expect(response.status, await response.clone().text()).toBe(201);
  return `traced/${id}`;
}

beforeAll(async () => {
  helper = await createAgent({ identity: identity("You are the helper.") });
  lead = await createAgent({
    identity: identity("You are the lead."),
    tools: { toolIds: [await askTool("ask_helper", helper)] },
  });
  manager = await createAgent({
    identity: identity("You are the manager."),
    tools: { toolIds: [await askTool("ask_lead", lead)] },
  });
  buyer = await createAgent("test/buyer");
});

afterEach(checkInvariants);

/** A new trace that this test may look at. */
function newTrace(prefix = "7e57") {
  const traceId = prefix + crypto.randomUUID().replaceAll("-", "").slice(prefix.length);
  return { traceId, traceparent: `00-${traceId}-00f067aa0ba902b7-01` };
}

/** Sends a message with a header of W3C Trace Context; returns its turn's id. */
async function say(conversation: TestConversation, content: string, traceparent: string): Promise<string> {
  const response = await request(`${conversation.path}/turns`, {
    method: "POST",
    headers: { "content-type": "application/json", traceparent },
    body: JSON.stringify({ content }),
  });
  expect(response.status, await response.clone().text()).toBe(202);
  return (await response.json<{ turnId: string }>()).turnId;
}

function attribute({ attributes }: SpanRecord, key: string): string | undefined {
  const value = attributes.find((one) => one.key === key)?.value;
  return value?.stringValue ?? value?.intValue;
}

const namesOf = (spans: readonly SpanRecord[]) => spans.map(({ name }) => name).sort();

describe("G17 a trace", () => {
  test("TRACE-1 SPANS-3 covers three agents, and its tokens equal the ledger's tokens", async () => {
    const conversation = await createConversation(manager);
    const usage = (input: number, output: number) => ({
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output },
    });
    const worker = new Play({ replies: [[{ text: "Worked." }, usage(11, 2)]] });
    const middle = new Play({
      replies: [
        [{ call: "ask_helper", input: { message: worker.content } }, usage(101, 20)],
        [{ text: "Led." }, usage(103, 3)],
      ],
    });
    const top = new Play({
      replies: [
        [{ call: "ask_lead", input: { message: middle.content } }, usage(1001, 200)],
        [{ text: "Managed." }, usage(1003, 4)],
      ],
    });
    const { traceId, traceparent } = newTrace();
    const turnId = await say(conversation, top.content, traceparent);
    const turn = await conversation.ended(turnId);
    expect(turn.answer).toBe("Managed.");
    const spans = await spansOf(traceId, 12);
    expect(namesOf(spans)).toEqual(
      [
        ...Array(5).fill("chat scripted"),
        `invoke_agent ${manager}`,
        `invoke_agent ${manager}`,
        `invoke_agent ${lead}`,
        `invoke_agent ${lead}`,
        `invoke_agent ${lead}`,
        `invoke_agent ${helper}`,
        `invoke_agent ${helper}`,
      ].sort(),
    );
    const conversations = new Set(spans.map((span) => attribute(span, "gen_ai.conversation.id")));
    expect(conversations.size).toBe(3);
    const tokens = spans.reduce(
      (sum, span) =>
        sum +
        Number(attribute(span, "gen_ai.usage.input_tokens") ?? 0) +
        Number(attribute(span, "gen_ai.usage.output_tokens") ?? 0),
      0,
    );
    expect(tokens).toBe(2448);
    expect(turn.spent.tokens).toBe(2448);

    const ids = new Set(spans.map(({ spanId }) => spanId));
    expect(ids.size, "each span once").toBe(spans.length);
    const roots = spans.filter(({ parentSpanId = "" }) => !ids.has(parentSpanId));
    expect(
      roots.map(({ parentSpanId }) => parentSpanId),
      "one root, below the caller's span",
    ).toEqual(["00f067aa0ba902b7"]);
    for (const { startTimeUnixNano, endTimeUnixNano } of spans)
      expect(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano)).toBe(true);
  });

  test("SPANS-1 SPANS-2 continues after a crash in the middle of a long wait, with no span over the wait", async () => {
    const conversation = await createConversation(buyer);
    const play = new Play((key) => ({ replies: [[{ call: "pay", input: { key } }], [{ text: "Paid." }]] }));
    const { traceId, traceparent } = newTrace();
    const turnId = await say(conversation, play.content, traceparent);
    const [run] = await play.runs(1);
    // SAFETY: the tool reports its handle.
    const { handle } = (run?.input ?? {}) as { handle: string };
    const before = await spansOf(traceId, 3);
    expect(namesOf(before)).toEqual([`chat scripted`, `execute_tool pay`, `invoke_agent ${buyer}`].sort());
    await crash();
    const resumedAt = BigInt(Date.now()) * 1_000_000n;
    const response = await request(`/api/operations/${handle}/result`, {
      method: "POST",
      body: JSON.stringify({ result: { paid: true } }),
    });
    expect(response.status).toBe(200);
    expect((await conversation.ended(turnId)).answer).toBe("Paid.");
    const spans = await spansOf(traceId, 5);
    expect(namesOf(spans.slice(3))).toEqual([`chat scripted`, `invoke_agent ${buyer}`].sort());
    const isOver = (span: SpanRecord) => BigInt(span.endTimeUnixNano) <= resumedAt;
    const hasBegun = (span: SpanRecord) => BigInt(span.startTimeUnixNano) >= resumedAt - 1_000_000n;
    expect(spans.every((span) => isOver(span) || hasBegun(span))).toBe(true);
    const first = spans.find(({ parentSpanId }) => parentSpanId === "00f067aa0ba902b7");
    const second = spans.slice(3).find(({ name }) => name.startsWith("invoke_agent"));
    expect(second?.parentSpanId).toBe(first?.spanId);
  });

  test("SPANOUT-1 an exporter that never answers delays no turn", async () => {
    const conversation = await createConversation(helper);
    const play = new Play({ replies: [[{ text: "At once." }]] });
    const turnId = await say(conversation, play.content, newTrace("7e57dead").traceparent);
    expect((await conversation.ended(turnId)).answer).toBe("At once.");
    const next = new Play({ replies: [[{ text: "Again." }]] });
    const nextId = await say(conversation, next.content, newTrace("7e57dead").traceparent);
    expect((await conversation.ended(nextId)).answer).toBe("Again.");
  });

  test("SPAN-2 TRACE-2 an invalid header begins a trace; an unsampled header exports no span", async () => {
    const conversation = await createConversation(helper);
    const sampled = newTrace();
    const unsampled = newTrace();
    const cases = ["nonsense", `${unsampled.traceparent.slice(0, -2)}00`, sampled.traceparent];
    for (const traceparent of cases) {
      const play = new Play({ replies: [[{ text: "Fine." }]] });
      const turnId = await say(conversation, play.content, traceparent);
      expect((await conversation.ended(turnId)).answer).toBe("Fine.");
    }
    // Exports of one conversation are in order.
    expect(await spansOf(sampled.traceId, 2)).toHaveLength(2);
    expect(await spansOf(unsampled.traceId, 0)).toEqual([]);
  });

  test("SPANS-4 E28 has no text of people, models and tools", async () => {
    const conversation = await createConversation(manager);
    const secret = "sk-the-secret-of-ada";
    const child = new Play({ replies: [[{ text: `Never say ${secret}.` }]] });
    const play = new Play({
      replies: [
        [{ call: "ask_lead", input: { message: child.content } }],
        [{ text: `The answer has ${secret}.` }],
      ],
    });
    const { traceId, traceparent } = newTrace();
    const turnId = await say(conversation, play.content, traceparent);
    await conversation.ended(turnId);
    const bytes = JSON.stringify(await spansOf(traceId, 6));
    for (const text of [secret, "Never say", "The answer has", "You are the"])
      expect(bytes).not.toContain(text);
  });
});
