/** The core of a conversation in a sandbox with only the language: no clock, no randomness, no network, no timers. */
import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { rolldown } from "rolldown";
import { describe, expect, test } from "vitest";
import { allowAll } from "../../src/policy/gate.ts";
import { recordOf } from "../support/records.ts";

const ROOT = join(import.meta.dirname, "../..");
const CORE = join(ROOT, "src/agents/conversation/core");

/** The functions that a script of the sandbox uses: the entrance of the core, and the effects that a state calls for. */
const ENTRY = `
import { beginCycles, step } from ${JSON.stringify(join(CORE, "step.ts"))};
import { beginTransition } from ${JSON.stringify(join(CORE, "transition.ts"))};
import { effectsOf, dueIn } from ${JSON.stringify(join(CORE, "effects.ts"))};
import { NEW_STATE } from ${JSON.stringify(join(CORE, "state.ts"))};

const effects = [];
let state = { ...NEW_STATE, record, seq: 1, turns: 0, active: new Map(), stored: new Map() };
const send = (signal) => {
  const input = { now: (now += 1000), stem: "01ARZ3NDEKTSV4RRFFQ", gate };
  const { state: next, entries } = beginCycles(step(beginTransition(state), signal, input), input);
  state = { ...next, seq: state.seq + entries.length };
  effects.push(effectsOf(state).map(({ key }) => key), dueIn(state, now, 0));
};
let now = 0;
for (const signal of signals) send(signal);
result = JSON.stringify({ effects, turns: state.turns, active: [...state.active.values()] });
`;

/** Bundles the core with its imports into one script. */
async function bundle(): Promise<string> {
  const entry = "\0sandbox";
  const built = await rolldown({
    input: "sandbox",
    cwd: ROOT,
    plugins: [
      {
        name: "sandbox",
        resolveId: (id) => (id === "sandbox" ? entry : null),
        load: (id) => (id === entry ? { code: ENTRY, moduleType: "ts" } : null),
      },
    ],
  });
  const { output } = await built.generate({ format: "iife" });
  return output[0].code;
}

const FACTS = { startedAt: 1, finishedAt: 2 };
const CALLER = { type: "user", userId: "ada" } as const;
const called = (turn: number, item: number, attempt: number, reply: object) => ({
  type: "conversation.llm.completed",
  turn,
  item,
  attempt,
  facts: FACTS,
  reply: { text: "", toolCalls: [], finishReason: "stop", ...reply },
});
const message = (content: string) => ({
  type: "conversation.user.message",
  caller: CALLER,
  data: { content },
});

/** Messages, a failure, calls of tools with a result, a crash, a stop, a resume and an answer. */
const SIGNALS = [
  message("Hello"),
  {
    type: "conversation.llm.failed",
    turn: 1,
    item: 1,
    attempt: 1,
    facts: FACTS,
    streamed: true,
    error: { category: "transient", message: "down", retriable: true, provider: "offline" },
  },
  called(1, 1, 2, { toolCalls: [{ id: "a", name: "nobody", arguments: {} }], finishReason: "tool_calls" }),
  message("And this?"),
  { type: "conversation.cmd.recover" },
  { type: "conversation.cmd.expire" },
  { type: "conversation.update", caller: CALLER, order: "queued" },
  { type: "conversation.cancel", caller: CALLER, turn: 2 },
  { type: "conversation.cancel", caller: CALLER },
  { type: "conversation.resume", caller: CALLER },
  message("Once more"),
  called(3, 1, 1, { text: "Here." }),
];

/** The globals of a sandbox: the language's globals and the encoding of texts. `Date.now` and `Math.random` throw. */
function sandbox(): ReturnType<typeof createContext> {
  const context = createContext({
    TextEncoder,
    TextDecoder,
    gate: allowAll,
    record: recordOf(),
    signals: SIGNALS,
    result: "",
  });
  runInContext(
    `const refuse = (what) => () => { throw new Error("The core used " + what + "."); };
     Math.random = refuse("chance");
     globalThis.Date = new Proxy(Date, {
       construct: (Real, given) => given.length === 0 ? refuse("the clock")() : new Real(...given),
       get: (Real, name) => name === "now" ? refuse("the clock") : Real[name],
     });`,
    context,
  );
  return context;
}

describe("the core", () => {
  test("E8 A71 plans and reduces in a sandbox without I/O, clock and chance", async () => {
    const context = sandbox();
    for (const name of [
      "fetch",
      "setTimeout",
      "queueMicrotask",
      "crypto",
      "process",
      "require",
      "performance",
    ])
      expect(runInContext(`typeof ${name}`, context), name).toBe("undefined");
    for (const used of ["Date.now()", "new Date()", "Math.random()"])
      expect(() => runInContext(used, context), used).toThrow("The core used");
    runInContext(await bundle(), context);
    const { effects, turns, active } = JSON.parse(String(context.result));
    expect([turns, active]).toEqual([3, []]);
    expect(effects.filter(Array.isArray)).toEqual([
      ["model:1:1:1"],
      ["model:1:1:2"],
      ["model:1:3:1"],
      ["model:1:3:1", "model:2:1:1"],
      ["model:1:3:1", "model:2:1:1"],
      ["model:1:3:1", "model:2:1:1"],
      ["model:1:3:1", "model:2:1:1"],
      ["model:1:3:1"],
      [],
      [],
      ["model:3:1:1"],
      [],
    ]);
  });
});
