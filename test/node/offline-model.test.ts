/** The offline model answers by the rules of `docs/offline-model.md`; titles carry their numbers. */
import { type Schema, Validator } from "@cfworker/json-schema";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { offlineFormat } from "../../src/adapters/formats/offline/adapter.ts";
import { offlineModel } from "../../src/adapters/formats/offline/model.ts";
import { ReplyAccumulator } from "../../src/adapters/reply.ts";
import type { ModelContext } from "../../src/model/context.ts";
import type { ContextMessage } from "../../src/model/messages.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { ModelDelta, ModelReply } from "../../src/model/reply.ts";
import { titleRequest } from "../../src/model/title-request.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { memberNames } from "../support/json-values.ts";

const PROFILE: ModelProfile = { provider: "offline", modelId: "offline-1" };
const DEMO_TOOLS = ["calculator", "dates", "search_docs", "notes"];

interface Given {
  tools?: string[];
  toolChoice?: ModelContext["toolChoice"];
  output?: ModelContext["output"];
  systemInstructions?: string[];
  profile?: Partial<ModelProfile>;
}

function contextOf(messages: ContextMessage[], given: Given): ModelContext {
  const { tools = DEMO_TOOLS, toolChoice = "auto", systemInstructions = ["Be brief."] } = given;
  const specs = tools.map((name) => ({ name, description: name, inputSchema: { type: "object" } }));
  const { output } = given;
  return {
    systemInstructions,
    messages,
    tools: specs,
    toolChoice,
    ...(output === undefined ? {} : { output }),
  };
}

async function deltasOf(
  messages: ContextMessage[],
  given: Given = {},
  pause?: (ms: number) => Promise<void>,
) {
  const body = offlineFormat.buildRequest({ ...PROFILE, ...given.profile }, contextOf(messages, given));
  const decoder = offlineFormat.decoder();
  const deltas: ModelDelta[] = [];
  for await (const payload of offlineModel(body, pause)) deltas.push(...decoder.push(payload));
  return [...deltas, ...decoder.end()];
}

async function replyTo(messages: ContextMessage[], given: Given = {}): Promise<ModelReply> {
  const reply = new ReplyAccumulator("offline");
  for (const delta of await deltasOf(messages, given)) reply.add(delta);
  const outcome = reply.outcome();
  if (!outcome.ok) throw new Error(outcome.error.message);
  return outcome.reply;
}

async function ask(text: string, given: Given = {}): Promise<ModelReply> {
  return replyTo([user(text)], given);
}

async function callsFor(text: string, given: Given = {}): Promise<{ name: string; arguments: unknown }[]> {
  const { toolCalls } = await ask(text, given);
  return toolCalls.map(({ name, arguments: input }) => ({ name, arguments: input }));
}

const user = (content: string): ContextMessage => ({ role: "user", content });
const assistant = (content: string): ContextMessage => ({ role: "assistant", content });

/** The conversation after a reply that called tools, with these results in the order of the calls. */
function answered(messages: ContextMessage[], reply: ModelReply, results: unknown[]): ContextMessage[] {
  const calls: ContextMessage = { role: "assistant", content: reply.text, toolCalls: reply.toolCalls };
  return [
    ...messages,
    calls,
    ...reply.toolCalls.map(({ id, name }, index): ContextMessage => {
      return { role: "tool", content: JSON.stringify(results[index]), toolCallId: id, name };
    }),
  ];
}

describe("rule 1: !tool", () => {
  test("calls the named tool with the arguments, even an unknown tool", async () => {
    expect(await callsFor('!tool nothing.like.it {"a": [1, "zwei"]}')).toEqual([
      { name: "nothing.like.it", arguments: { a: [1, "zwei"] } },
    ]);
  });

  test("several lines are several calls in one reply, with separate ids", async () => {
    const reply = await ask(
      'Please:\n!tool calculator {"expression": "6*7"}\nand\n  !tool dates\r\n!tool dates {}',
    );
    expect(reply.toolCalls.map(({ name }) => name)).toEqual(["calculator", "dates", "dates"]);
    expect(reply.toolCalls[1]?.arguments).toEqual({});
    expect(new Set(reply.toolCalls.map(({ id }) => id)).size).toBe(3);
    expect(reply.finishReason).toBe("tool_calls");
    expect(reply.text).toBe("");
  });

  test("arguments that are not a JSON object are passed on unchanged", async () => {
    const { toolCalls } = await ask("!tool calculator {expression: 1}");
    expect(toolCalls).toMatchObject([{ arguments: {}, invalidArguments: "{expression: 1}" }]);
  });

  test("if tools may not be called, reports it and calls none", async () => {
    const reply = await ask("!tool calculator {}\n!tool dates {}", { toolChoice: "none" });
    expect(reply.toolCalls).toEqual([]);
    expect(reply.text).toBe(
      "Offline model: tools are switched off for this reply, so I did not call calculator, dates.",
    );
  });
});

describe("rule 17: a developer mends a function", () => {
  const given = { tools: ["repo_search", "repo_edit", "repo_commit"] };
  const found = (path: string, ...lines: string[]) => ({
    matches: lines.map((text, index) => ({ path, line: index + 1, text })),
  });
  const tests = found(
    "sum.test.js",
    "equal(sum(2, 3), 5);",
    "equal(other(1, 1), 9);",
    "equal(sum(-1, 1), 0);",
  );

  async function replyAfter(...results: unknown[]) {
    let messages = [user("Please fix the failing test.")];
    for (const result of results) messages = answered(messages, await replyTo(messages, given), [result]);
    const { toolCalls, text } = await replyTo(messages, given);
    return toolCalls[0] ?? text;
  }

  test("searches, edits, commits and reports what the tests demand", async () => {
    expect(await replyAfter()).toMatchObject({ name: "repo_search" });
    expect(await replyAfter(tests)).toMatchObject({ name: "repo_search", arguments: { regex: true } });
    const source = found("sum.js", "export const sum = (a, b) => a - b;");
    expect(await replyAfter(tests, source)).toMatchObject({
      name: "repo_edit",
      arguments: { path: "sum.js", before: "a - b;", after: "a + b;" },
    });
    expect(await replyAfter(tests, source, { path: "sum.js" })).toMatchObject({ name: "repo_commit" });
    expect(await replyAfter(tests, source, { path: "sum.js" }, { branch: "dramatis/conv-1" })).toMatch(
      /^Offline model: I changed `a - b;` to `a \+ b;` in sum\.js.*dramatis\/conv-1/,
    );
  });

  test("quotes results that it does not understand", async () => {
    for (const results of [
      [{ matches: [] }],
      [tests, found("sum.js", "export const sum = (a, b) => a + b;")],
      [found("x.js", "equal(f(2, 3), 50);"), found("f.js", "f = (a, b) => a - b;")],
    ])
      expect(await replyAfter(...results)).toMatch(/^Offline model: repo_search answered /);
  });
});

describe("rule 2: !then and !loop", () => {
  test("!then makes the calls of the next reply after the results of the previous reply", async () => {
    const start = [user("!tool notes {}\n!then\n!tool dates {}\n!tool calculator {}")];
    const first = await replyTo(start);
    expect(first.toolCalls.map(({ name }) => name)).toEqual(["notes"]);
    const second = await replyTo(answered(start, first, [{ notes: [] }]));
    expect(second.toolCalls.map(({ name }) => name)).toEqual(["dates", "calculator"]);
    const after = answered(answered(start, first, [{ notes: [] }]), second, [
      { date: "2026-01-01" },
      { result: 3 },
    ]);
    const last = await replyTo(after);
    expect(last.toolCalls).toEqual([]);
    expect(last.text).toBe(
      "Offline model: notes answered nothing; dates answered 2026-01-01; calculator answered 3.",
    );
  });

  test("!loop calls again after each result, until tools are switched off", async () => {
    let messages = [user("!loop calculator {}")];
    const ids = new Set<string>();
    for (let round = 0; round < 5; round++) {
      const reply = await replyTo(messages);
      expect(reply.toolCalls).toHaveLength(1);
      ids.add(reply.toolCalls[0]?.id ?? "");
      messages = answered(messages, reply, [{ result: round }]);
    }
    expect(ids.size).toBe(5);
    const forced = await replyTo(messages, { toolChoice: "none" });
    expect(forced.toolCalls).toEqual([]);
    expect(forced.text).toContain("calculator answered 4.");
  });
});

test("rule 3: !say answers exactly the text, in chunks that join to it", async () => {
  const text = fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 300 })
    .filter((value) => value.isWellFormed());
  await fc.assert(
    fc.asyncProperty(text, async (said) => {
      const deltas = await deltasOf([user(`!say ${said}`)]);
      const texts = deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : []));
      expect(texts.join("")).toBe(said);
      for (const piece of texts) expect(piece.isWellFormed()).toBe(true);
    }),
  );
});

describe("rule 4: !slow", () => {
  test("streams the requested number of words, one per chunk, with a pause after each", async () => {
    const pauses: number[] = [];
    const deltas = await deltasOf([user("!slow 3")], {}, async (ms) => void pauses.push(ms));
    const texts = deltas.flatMap((delta) => (delta.type === "text" ? [delta.text] : []));
    expect(texts).toEqual(["word-1 ", "word-2 ", "word-3"]);
    expect(pauses).toEqual([40, 40, 40]);
  });

  test("takes another pause, and bounds both numbers", async () => {
    const pauses = new Set<number>();
    const deltas = await deltasOf([user("!slow 99999 5000")], {}, async (ms) => void pauses.add(ms));
    expect(deltas.filter(({ type }) => type === "text")).toHaveLength(1_000);
    expect([...pauses]).toEqual([1_000]);
  });
});

test("rule 5: repeats a notice of the platform that is the last message", async () => {
  const { text } = await replyTo([
    user("start the report"),
    assistant("It is running."),
    { role: "system", content: "The operation op_1 of report completed: 42 pages." },
  ]);
  expect(text).toBe("Offline model: I was told: The operation op_1 of report completed: 42 pages.");
});

describe("rule 6: results", () => {
  const replyToResult = async (result: unknown, metadata?: ContextMessage["metadata"]) => {
    const start = [user("!tool lookup {}")];
    const messages = answered(start, await replyTo(start), [result]);
    const last = messages.at(-1);
    if (metadata !== undefined && last !== undefined) last.metadata = metadata;
    return (await replyTo(messages)).text;
  };

  test("quotes the tool's answer", async () => {
    expect(await replyToResult({ result: 84 })).toBe("Offline model: lookup answered 84.");
    expect(await replyToResult("plain text")).toBe("Offline model: lookup answered plain text.");
    expect(await replyToResult({ date: "2026-05-01", weekday: "Friday" })).toBe(
      "Offline model: lookup answered date 2026-05-01, weekday Friday.",
    );
    expect(await replyToResult({ notes: [{ id: "1", text: "buy milk" }] })).toBe(
      'Offline model: lookup answered "buy milk".',
    );
    expect(
      await replyToResult({
        results: [{ path: "docs/a.md", title: "A", heading: "Use", excerpt: "Do this." }],
      }),
    ).toBe('Offline model: lookup answered Use (docs/a.md): "Do this.".');
    expect(await replyToResult({ note: "Quotes.", memories: [{ id: "mem_1", content: "Likes tea." }] })).toBe(
      'Offline model: lookup answered "Likes tea.".',
    );
    expect(await replyToResult({ success: true, result: [1, 2] })).toBe(
      "Offline model: lookup answered 1, 2.",
    );
  });

  test("states a failure with its code", async () => {
    const failed = "Offline model: lookup failed with TIMEOUT: It took too long.";
    const error = { code: "TIMEOUT", message: "It took too long.", retriable: true };
    expect(await replyToResult({ error })).toBe(failed);
    expect(await replyToResult({ success: false, error })).toBe(failed);
    expect(await replyToResult(error, { isSuccess: false })).toBe(failed);
    expect(await replyToResult("It broke.", { isSuccess: false })).toBe(
      "Offline model: lookup failed: It broke.",
    );
  });

  test("reports that a background operation still runs", async () => {
    expect(await replyToResult({ status: "pending", operation_id: "op_1" })).toBe(
      "Offline model: lookup was started and is still running.",
    );
  });

  test("stays short, however many and however long the results are", async () => {
    const start = [user(Array.from({ length: 100 }, () => "!tool lookup {}").join("\n"))];
    const reply = await replyTo(start);
    const { text } = await replyTo(
      answered(
        start,
        reply,
        reply.toolCalls.map(() => "😀".repeat(10_000)),
      ),
    );
    expect(text.length).toBeLessThan(11_000);
    expect(text.isWellFormed()).toBe(true);
    expect(text).toMatch(/; and 80 more results\.$/);
  });
});

test.each([
  [
    8,
    "Remember that the key is under the mat.",
    "notes",
    { action: "add", text: "the key is under the mat." },
  ],
  [8, "please note: buy milk", "notes", { action: "add", text: "buy milk" }],
  [9, "What are my notes?", "notes", { action: "list" }],
  [9, "Recall", "notes", { action: "list" }],
  [12, "Search the docs for session events.", "search_docs", { query: "session events" }],
  [12, "How do I add a tool?", "search_docs", { query: "add a tool" }],
  [13, "What day is today?", "dates", { action: "today" }],
  [13, "What date is tomorrow?", "dates", { action: "add", days: 1 }],
  [13, "What day was yesterday?", "dates", { action: "add", days: -1 }],
  [13, "What date is in 3 weeks?", "dates", { action: "add", weeks: 3 }],
  [13, "What was the date 2 months ago?", "dates", { action: "add", months: -2 }],
  [13, "Which weekday was 2024-02-29?", "dates", { action: "weekday", date: "2024-02-29" }],
  [13, "Days until 2030-01-01?", "dates", { action: "difference", until: "2030-01-01" }],
  [13, "Days since 2020-01-01?", "dates", { action: "difference", date: "2020-01-01" }],
  [
    13,
    "How many days from 2024-01-01 to 2024-03-01?",
    "dates",
    { action: "difference", date: "2024-01-01", until: "2024-03-01" },
  ],
  [14, "what is 12*(3+4)?", "calculator", { expression: "12*(3+4)" }],
  [14, "Please work out (2 + 3) × 4 ÷ -2 for me", "calculator", { expression: "(2 + 3) * 4 / -2" }],
  [14, "(is 2^10 - 24 = 1000?)", "calculator", { expression: "2^10 - 24" }],
])("rule %i: %s", async (_rule, text, name, input) => {
  expect(await callsFor(text)).toEqual([{ name, arguments: input }]);
  const without = await ask(text, { tools: [] });
  expect(without.toolCalls).toEqual([]);
  const forbidden = await ask(text, { toolChoice: "none" });
  expect(forbidden.toolCalls).toEqual([]);
});

describe("rules 10 and 11: the conversation is remembered", () => {
  const history = [
    user("My name is Ada King Lovelace, and I like numbers."),
    assistant("Hello."),
    user("It rains."),
  ];

  test("rule 10: greets by name, and repeats the name later", async () => {
    expect((await ask("my name is Grace")).text).toBe(
      'Offline model: hello Grace. Ask me later: "What is my name?"',
    );
    expect((await replyTo([...history, user("What's my name?")])).text).toBe(
      "Offline model: your name is Ada King Lovelace. You told me so earlier in this conversation.",
    );
    const renamed = [...history, user("Sorry, my name is O’Neil."), assistant("Hello."), user("Who am I?")];
    expect((await replyTo(renamed)).text).toContain("your name is O’Neil.");
  });

  test("rule 10: admits unknown names", async () => {
    expect((await ask("What is my name?")).text).toContain("I do not know your name");
  });

  test("rule 11: quotes the user's messages", async () => {
    expect((await replyTo([...history, user("What did I say?")])).text).toBe(
      'Offline model: you said "My name is Ada King Lovelace, and I like numbers.", then "It rains.".',
    );
    expect((await ask("What did I just say?")).text).toBe(
      "Offline model: this is your first message that I see.",
    );
  });
});

describe("rule 18: greetings and questions about the agent", () => {
  const weather = {
    name: "weather",
    description: "Returns the weather of a city. In degrees Celsius.",
    inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  };
  const answerOf = async (text: string, persona: string, tools: object[] = []) => {
    const body = {
      messages: [
        { role: "system", text: persona },
        { role: "user", text },
      ],
      tools,
    };
    let said = "";
    for await (const payload of offlineModel(body))
      said += String((JSON.parse(String(payload)) as { text?: string }).text ?? "");
    return said;
  };

  test("answers from the persona and the tools of the agent", async () => {
    const persona = "You are a guide to the mountains of Norway. Be brief.";
    const hello = await answerOf("Hello!", persona, [weather]);
    expect(hello).toContain("Offline model: hello. I am a guide to the mountains of Norway.");
    for (const text of [hello, await answerOf("What can you do?", persona, [weather])]) {
      expect(text).toContain('weather: Returns the weather of a city. Try `!tool weather {"city":');
      expect(text).not.toContain("calculator");
    }
    expect(await answerOf("What does the weather do?", persona, [weather])).toContain(
      "Offline model: weather: Returns the weather of a city.",
    );
    expect(await answerOf("Hi", "Answer in French.")).toContain("I am an agent of this server.");
  });

  test("calculates without a calculator, if the message asks for it", async () => {
    const persona = "You are a guide.";
    expect(await answerOf("What is 12 * 34?", persona)).toBe("Offline model: 12 * 34 is 408.");
    expect(await answerOf("-2**2 + (7 % 4) / .5", persona)).toBe("Offline model: -2**2 + (7 % 4) / .5 is 2.");
    for (const text of ["What is 1/0?", "My number is 12-34"])
      expect(await answerOf(text, persona)).toContain(`you wrote "${text}"`);
  });
});

describe("rule 19: everything else", () => {
  test("repeats the message and suggests other messages", async () => {
    const { text } = await ask("Tell me a story.");
    expect(text).toMatch(/^Offline model: you wrote "Tell me a story\."\. No language model is connected/);
    for (const tip of ["12 * 34", "What day is today?", "Make a note", "How do I", "OPENAI_API_KEY"]) {
      expect(text).toContain(tip);
    }
  });

  test("suggests no tool that the agent does not have", async () => {
    const { text } = await ask("Tell me a story.", { tools: ["dates"] });
    expect(text).toContain("What day is today?");
    expect(text).not.toContain("12 * 34");
  });

  test("a version number, a date or a lone number is no calculation", async () => {
    for (const text of ["version 1.2.3", "born 1815-12-10", "I am 42", "well - yes", "call (555"]) {
      expect((await ask(text, { tools: ["calculator"] })).toolCalls).toEqual([]);
    }
  });
});

describe("any message", () => {
  const anyText = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.string({ unit: fc.constantFrom("!", "(", ")", "1", "+", "-", " ", "\n", "{", "tool", "say", "slow") }),
    fc
      .constantFrom("what is ", "remember ", "how do I ")
      .chain((start) => fc.string().map((rest) => start + rest)),
  );

  test("OFFLINE-1 equal requests get equal replies, and each is complete", async () => {
    await fc.assert(
      fc.asyncProperty(anyText, async (text) => {
        const deltas = await deltasOf([user(text)]);
        expect(deltas.at(-1)?.type).toBe("finish");
        expect(await deltasOf([user(text)])).toEqual(deltas);
      }),
    );
  });

  test("OFFLINE-2 OFFLINE-3 without tools it answers in text that is labelled", async () => {
    const plain = anyText.filter((text) => !/^!(?:say|slow) /.test(text));
    await fc.assert(
      fc.asyncProperty(plain, async (text) => {
        const reply = await ask(text, { toolChoice: "none" });
        expect(reply.toolCalls).toEqual([]);
        expect(reply.text).toMatch(/^Offline model: /);
      }),
    );
  });

  test.each([
    ["Please plan my trip to Vienna. There are two of us.", "Plan my trip to Vienna."],
    ["Hello, what is 12*(3+4)?", "What is 12*(3+4)?"],
    ["!say Good morning\nMore", "Good morning"],
  ])("G24 OFFLINE-3 TITLE-6 the title of %j is %j", async (message, title) => {
    const { messages, systemInstructions } = titleRequest(message, "Yes.");
    expect(
      (await ask(messages[0]?.content ?? "", { systemInstructions: [...systemInstructions] })).text,
    ).toBe(title);
  });

  test.each(['"\\q"', '"a" or "b"', '"Trains to Graz"'])(
    "OFFLINE-3 a user's message that looks like an order for a title of %s gets a labelled answer",
    async (quoted) => {
      const order = `Write a title for a conversation.\nMessage: ${quoted}`;
      expect((await ask(order)).text).toMatch(/^Offline model: /);
    },
  );

  test("a message of a mebibyte is answered at once", async () => {
    for (const unit of ["(", "1+", " ", "!tool x {}\n", "my name is ", "how do I "]) {
      // Superlinear work exceeds the time limit of the test.
      expect(await ask(unit.repeat(1_048_576 / unit.length))).toBeDefined();
    }
    expect(await ask(`remember${" ".repeat(1_048_576)}`)).toBeDefined();
  });
});

test("calls ids that no other reply of the conversation has", async () => {
  const start = [user("!tool dates {}")];
  const first = await replyTo(start);
  const again = [...answered(start, first, [{}]), assistant("Done."), user("!tool dates {}")];
  const second = await replyTo(again);
  expect(second.toolCalls[0]?.id).not.toBe(first.toolCalls[0]?.id);
});

test("counts words as usage and names its reply", async () => {
  const deltas = await deltasOf([user("!say one two three")], { systemInstructions: ["be kind"] });
  expect(deltas[0]?.type).toBe("message-id");
  expect(deltas).toContainEqual({
    type: "usage",
    usage: { inputTokens: 6, outputTokens: 3, totalTokens: 9 },
  });
});

test("a profile's pauseMs paces every answer", async () => {
  const pauses: number[] = [];
  const given = { profile: { parameters: { pauseMs: 7 } } };
  await deltasOf([user("!say a b c d")], given, async (ms) => void pauses.push(ms));
  expect(pauses).toEqual([7, 7]);
});

test("a request of another shape is refused as a validation error", async () => {
  const decoder = offlineFormat.decoder();
  const deltas: ModelDelta[] = [];
  for await (const payload of offlineModel({ messages: "none" })) deltas.push(...decoder.push(payload));
  expect([...deltas, ...decoder.end()]).toMatchObject([
    { type: "error", error: { category: "validation", retriable: false, provider: "offline" } },
  ]);
});

describe("answers as data", () => {
  /** Schemas with every keyword that `docs/offline-model.md` names. */
  const schema: fc.Arbitrary<JsonObject> = fc.letrec<{ any: JsonObject; object: JsonObject }>((tie) => ({
    object: fc
      .tuple(fc.dictionary(memberNames(), tie("any"), { maxKeys: 3, noNullPrototype: true }), fc.boolean())
      .map(([properties, isStrict]) => ({
        type: "object",
        properties,
        ...(isStrict ? { required: Object.keys(properties), additionalProperties: false } : {}),
      })),
    any: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.constantFrom<JsonObject>(
        { type: "boolean" },
        { type: "null" },
        { type: ["string", "null"] },
        { const: { a: [1] } },
        { enum: ["red", "green"] },
        { type: "string", format: "date-time" },
        { type: "string", format: "uuid" },
        { type: "integer", exclusiveMinimum: 3, maximum: 9 },
        { type: "integer", exclusiveMaximum: -2 },
        { type: "number", minimum: 0.25, exclusiveMaximum: 0.5 },
        { type: "number", minimum: 11, multipleOf: 5 },
        { type: "array", items: { type: "integer" }, minItems: 3, uniqueItems: true },
        { type: "array", prefixItems: [{ type: "string" }, { type: "number" }] },
      ),
      fc
        .record({ least: fc.nat(30), more: fc.nat(30) })
        .map(({ least, more }) => ({ type: "string", minLength: least, maxLength: least + more })),
      tie("object"),
      tie("any").map((items) => ({ type: "array", items, minItems: 2, maxItems: 2 })),
      fc.tuple(tie("any"), tie("any")).map((anyOf) => ({ anyOf })),
      tie("object").map((part) => ({ allOf: [part, { type: "object" }] })),
    ),
  })).object;

  test("OFFLINE-4 OFFLINE-1 a value fits its schema, and is the same every time", async () => {
    await fc.assert(
      fc.asyncProperty(schema, async (given) => {
        const output = { name: "answer", schema: given };
        const { text, finishReason } = await ask("Hello", { output });
        const { errors } = new Validator(structuredClone(given) as Schema, "2020-12", false).validate(
          JSON.parse(text),
        );
        expect(errors).toEqual([]);
        expect(finishReason).toBe("stop");
        expect((await ask("Hello", { output })).text).toBe(text);
      }),
      { numRuns: 100 },
    );
  });

  test("a format that is not known is ignored, whatever its name", async () => {
    const given = { type: "object", properties: { text: { type: "string", format: "constructor" } } };
    expect((await ask("Hello", { output: { name: "text", schema: given } })).text).toBe('{"text":"offline"}');
  });

  test.each(["^[a-z]+$", "^[a-z0-9-]{1,64}$", "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"])(
    "OFFLINE-4 an id with the pattern %s fits",
    async (pattern) => {
      const properties = { id: { type: "string", pattern }, n: { type: "integer" } };
      const given = { type: "object", properties, required: ["id", "n"] };
      const { text } = await ask("Hello", { output: { name: "item", schema: given } });
      expect(
        new Validator(structuredClone(given) as Schema, "2020-12").validate(JSON.parse(text)).valid,
      ).toBe(true);
    },
  );

  test("OFFLINE-4 without a value that fits, the answer has the members that do", async () => {
    const properties = { id: { type: "string", pattern: "^[0-9]{4}$" }, n: { type: "integer", minimum: 7 } };
    const output = { name: "item", schema: { type: "object", properties } };
    expect(JSON.parse((await ask("Hello", { output })).text)).toMatchObject({ n: 7 });
    const broken = {
      type: "object",
      properties: { a: { $ref: "#/$defs/%" } },
      $defs: { "%": { type: "string" } },
    };
    expect(JSON.parse((await ask("Hello", { output: { name: "item", schema: broken } })).text)).toEqual({
      a: "offline",
    });
  });

  test("a schema that refers to itself has an end", async () => {
    const node = { type: "object", properties: { kids: { type: "array", items: { $ref: "#/$defs/node" } } } };
    const given = {
      type: "object",
      $defs: { node },
      properties: { tree: { $ref: "#/$defs/node" } },
      required: ["tree"],
    };
    const { text } = await ask("Hello", { output: { name: "tree", schema: given } });
    expect(new Validator(structuredClone(given) as Schema, "2020-12").validate(JSON.parse(text)).valid).toBe(
      true,
    );
  });

  test("commands are done to the letter, and tools are called before", async () => {
    const output = { name: "answer", schema: { type: "object" } };
    expect((await ask("!say no data", { output })).text).toBe("no data");
    const first = await ask("What is 12*(3+4)?", { output });
    expect(first.toolCalls).toMatchObject([{ name: "calculator" }]);
    const messages = answered([user("What is 12*(3+4)?")], first, [{ result: 84 }]);
    expect((await replyTo(messages, { output })).text).toBe("{}");
  });

  test("a required tool is called: the first tool, or the named tool", async () => {
    expect((await ask("Hello", { toolChoice: "required" })).toolCalls).toMatchObject([
      { name: "calculator" },
    ]);
    const named = await ask("Hello", { toolChoice: { name: "notes" } });
    expect(named.toolCalls).toMatchObject([{ name: "notes", arguments: {} }]);
    expect((await ask("!tool dates {}", { toolChoice: "required" })).toolCalls).toMatchObject([
      { name: "dates" },
    ]);
  });
});
