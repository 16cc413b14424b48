/** The simulation of an application of a user, and defects that are planted in its tools. */
import { expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import { step } from "../../src/library/tasks/step.ts";
import {
  call,
  type SimulateOptions,
  SimulationFailure,
  simulate,
  type TestApp,
} from "../../src/testing/index.ts";

/** A payment service that knows idempotency keys. */
class Bank {
  readonly charges: string[] = [];
  readonly #keys = new Set<string>();

  charge(order: string, key: string): string {
    if (!this.#keys.has(key)) this.charges.push(order);
    this.#keys.add(key);
    return `paid ${order}`;
  }
}

type Key = (operationId: string) => string;

/** Returns an application that charges its bank with these keys. */
function shopOf(bank: Bank, effect: "idempotent" | "once", keyOf: Key = (id) => id) {
  const charge = defineTool({
    name: "charge",
    description: "Charges an order.",
    input: z.object({ order: z.string() }),
    effect,
    execute: ({ order }, { operationId }) => bank.charge(order, keyOf(operationId)),
  });
  const ask = defineTool({ name: "ask", description: "Asks.", target: { agent: "expert" } });
  const seller = definePersona("seller", {
    identity: { systemPrompt: "Sell." },
    tools: { toolIds: ["charge", "ask"] },
  });
  const expert = definePersona("expert", { identity: { systemPrompt: "Know." } });
  return { libraries: [defineLibrary("shop", { personas: [seller, expert], tools: [charge, ask] })] };
}

async function talk(app: TestApp): Promise<void> {
  app.model.of("seller").script(call("charge", { order: "1" }), call("ask", { message: "?" }), "Paid.");
  app.model.of("expert").answer(() => "Yes.");
  app.model.of("seller").script(call("charge", { order: "2" }), "Paid again.");
  expect((await app.send("seller", "Order 1")).text).toBe("Paid.");
  expect((await app.send("seller", "Order 2")).text).toBe("Paid again.");
}

function simulated(effect: "idempotent" | "once", keyOf?: Key, options: Partial<SimulateOptions> = {}) {
  let bank = new Bank();
  return simulate(
    () => {
      bank = new Bank();
      return shopOf(bank, effect, keyOf);
    },
    { talk, effects: () => bank.charges, ...options },
  );
}

async function failureOf(run: Promise<unknown>): Promise<SimulationFailure> {
  const error = await run.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof SimulationFailure) return error;
  throw new Error(`Expected a failing seed, not ${error}`);
}

test.each(["idempotent", "once"] as const)(
  "H10 SIMAPP-1 a correct %s tool keeps all promises under faults of each kind",
  async (effect) => {
    const report = await simulated(effect, undefined, { seeds: 30 });
    expect(report.turns).toBe(2 * 30);
    for (const count of Object.values(report.faults)) expect(count).toBeGreaterThan(3);
  },
);

test("H10 SIMAPP-2 SIMAPP-3 a tool that ignores its key is found, with the faults and the history that it needs", async () => {
  let calls = 0;
  const careless = () => `${++calls}`;
  const failure = await failureOf(simulated("idempotent", careless));
  expect(failure.violations).toEqual([expect.stringMatching(/^The effect "[12]" happened 2 times\.$/)]);
  expect(failure.faults).toHaveLength(1);
  expect(failure.history.filter((line) => line.includes("charge({")).length).toBeGreaterThan(1);
  expect(failure.message).toContain(`Seed ${failure.seed} fails:`);
  // The seed repeats its failure.
  const again = await failureOf(simulated("idempotent", careless, { from: failure.seed, seeds: 1 }));
  expect(again.faults).toEqual(failure.faults);
  expect(again.history).toEqual(failure.history);
});

/** Returns an application whose tool knows its keys, and notes its charges after a wait. */
function slowShop(charges: string[], claims: "first" | "last") {
  const keys = new Set<string>();
  const charge = defineTool({
    name: "charge",
    description: "Charges an order.",
    input: z.object({ order: z.string() }),
    effect: "idempotent",
    async execute({ order }, { operationId }) {
      if (keys.has(operationId)) return "paid";
      if (claims === "first") keys.add(operationId);
      await Promise.resolve();
      charges.push(order);
      keys.add(operationId);
      return "paid";
    },
  });
  const seller = definePersona("seller", {
    identity: { systemPrompt: "Sell." },
    tools: { toolIds: ["charge"] },
  });
  return { libraries: [defineLibrary("shop", { personas: [seller], tools: [charge] })] };
}

test("H10 FAULT-2 a tool that waits between the check and the note of its key is found by a crash while it runs", async () => {
  let charges: string[] = [];
  const simulatedShop = (claims: "first" | "last") =>
    simulate(
      () => {
        charges = [];
        return slowShop(charges, claims);
      },
      { talk: orders, effects: () => charges, seeds: 60 },
    );
  expect((await simulatedShop("first")).turns).toBe(2 * 60);
  const failure = await failureOf(simulatedShop("last"));
  expect(failure.violations).toEqual([expect.stringMatching(/^The effect "[12]" happened 2 times\.$/)]);
  expect(failure.faults).toEqual([expect.objectContaining({ kind: "crash", port: "tool", when: "during" })]);
  expect(failure.message).toMatch(/crash during tool \d/);
  expect(failure.history.join("\n")).toContain("continues beside run 2");
});

test("H10 FAULT-2 a crash while a `once` tool runs starts no other run, and its result still arrives", async () => {
  let bank = new Bank();
  const seeds = { seeds: 60, faults: ["crash"], maxFaults: 1 } as const;
  const report = await simulate(
    () => {
      bank = new Bank();
      return shopOf(bank, "once");
    },
    { talk, effects: () => bank.charges, ...seeds },
  );
  expect(report.faults.crash).toBeGreaterThan(30);
});

test("H10 SIMAPP-2 an assertion of the talk or of the check that fails under faults is found", async () => {
  const check = (app: TestApp) => expect(app.effects.filter(({ attempt }) => attempt > 1)).toEqual([]);
  const failure = await failureOf(simulated("idempotent", undefined, { check }));
  expect(failure.violations[0]).toContain("expected");
  expect(failure.faults.length).toBeGreaterThan(0);
  const broken = await failureOf(
    simulated("idempotent", undefined, { talk: () => Promise.reject(new Error("Mine.")) }),
  );
  expect(broken).toMatchObject({ violations: ["Mine."], faults: [] });
});

/** Returns an application that charges over HTTP, and notes the charges. */
function onlineShop(charges: string[], effect: "pure" | "once", order = "input.order") {
  const charging = defineTask({
    id: "charging",
    input: z.object({ order: z.string() }),
    steps: [
      step("post", {
        action: { kind: "http.request", hosts: ["bank.example"], effect },
        inputMapping: { method: "'POST'", url: "'https://bank.example/' + input.order" },
        idempotencyKey: order,
      }),
    ],
  });
  const charge = defineTool({ name: "charge", description: "Charges.", target: { task: charging } });
  const seller = definePersona("seller", {
    identity: { systemPrompt: "Sell." },
    tools: { toolIds: ["charge"] },
  });
  return {
    libraries: [defineLibrary("shop", { personas: [seller], tools: [charge] })],
    http: ({ url }: Request) => {
      charges.push(url);
      return Response.json({});
    },
  };
}

async function orders(app: TestApp): Promise<void> {
  app.model.script(call("charge", { order: "1" }), "Paid.", call("charge", { order: "2" }), "Paid again.");
  await app.send("seller", "Order 1");
  await app.send("seller", "Order 2");
}

test("H10 SIMAPP-2 TESTHTTP-2 requests of actions are effects, so a double request is found", async () => {
  let charges: string[] = [];
  const simulatedShop = (effect: "pure" | "once", key?: string, options: Partial<SimulateOptions> = {}) =>
    simulate(
      () => {
        charges = [];
        return onlineShop(charges, effect, key);
      },
      { talk: orders, seeds: 40, ...options },
    );
  const effects = () => charges;
  const report = await simulatedShop("once", undefined, { effects });
  expect(report.effects).toBeGreaterThan(40);
  // A charge that is declared `pure` runs again after a fault.
  const careless = await failureOf(simulatedShop("pure", undefined, { effects }));
  expect(careless.violations[0]).toMatch(/^The effect "https:\/\/bank\.example\/[12]" happened \d+ times\.$/);
  // Two requests with one key are a double request, also without faults.
  const same = await failureOf(simulatedShop("once", "'one'"));
  expect(same.violations[0]).toMatch(/^The `once` tool "http\.request" runs 2 times/);
});

test("H10 SIMAPP-2 TESTHTTP-1 a request without a scripted answer fails the simulation", async () => {
  const { libraries } = onlineShop([], "once");
  const failure = await failureOf(simulate({ libraries }, { talk: orders, seeds: 5 }));
  expect(failure).toMatchObject({ faults: [], violations: [expect.stringContaining("option `http`")] });
});

test.each<[string, Partial<SimulateOptions>]>([
  ["seeds", { seeds: Number.NaN }],
  ["seeds", { seeds: 0 }],
  ["seeds", { seeds: -5 }],
  ["seeds", { seeds: 1.5 }],
  ["from", { from: Number.NaN }],
  // SAFETY: authors without types write anything.
  ["faults/0", { faults: ["crsh" as "crash"] }],
  ["faults", { faults: [] }],
  ["maxFaults", { maxFaults: Number.NaN }],
  ["maxFaults", { maxFaults: 0 }],
])("H10 SIMAPP-4 refuses an unusable option: %s %o", async (path, options) => {
  const errors = [expect.objectContaining({ path: `/${path}` })];
  await expect(simulated("once", undefined, options)).rejects.toMatchObject({
    code: "INVALID_INPUT",
    message: expect.stringContaining(`/${path}`),
    options: { errors },
  });
});

/** Returns an application with one tool. */
function workOf(execute: () => unknown, approval: "always" | "never" = "never") {
  const work = defineTool({
    ...{ name: "work", description: "Works.", input: z.object({}), effect: "pure", approval },
    execute: async () => (await execute()) ?? null,
  });
  const persona = definePersona("desk", {
    identity: { systemPrompt: "Work." },
    tools: { toolIds: ["work"] },
  });
  return { libraries: [defineLibrary("shop", { personas: [persona], tools: [work] })] };
}

async function work(app: TestApp): Promise<void> {
  app.model.script(call("work"), "Done.");
  await app.send("desk", "Work");
}

test("H10 TESTWORLD-3 a tool may throw and log", async () => {
  const lines: unknown[] = [];
  vi.spyOn(console, "error").mockImplementation((line) => void lines.push(line));
  onTestFinished(() => void vi.restoreAllMocks());
  const throws = workOf(() => {
    throw new Error("The service answered 503.");
  });
  expect((await simulate(throws, { seeds: 20, talk: work })).turns).toBe(20);
  expect(lines).toEqual([]);
  const logs = workOf(async () => {
    console.error("cache miss");
    await Promise.resolve();
    console.error("cache filled");
  });
  expect((await simulate(logs, { seeds: 20, talk: work })).turns).toBe(20);
  expect(new Set(lines)).toEqual(new Set(["cache miss", "cache filled"]));
});

test("H10 TESTWORLD-3 crashes print nothing, also while a test decides about calls", async () => {
  const error = vi.spyOn(console, "error").mockImplementation(() => undefined);
  onTestFinished(() => void error.mockRestore());
  const talk = async (app: TestApp) => {
    await work(app);
    for (const waiting of app.approvals()) await app.approve(waiting);
  };
  await simulate(
    workOf(() => 1, "always"),
    { seeds: 60, faults: ["crash"], talk },
  );
  expect(error).not.toHaveBeenCalled();
});

test("H10 SIMAPP-2 effects that are no texts, and a check that returns false, are violations", async () => {
  const base = { seeds: 1, talk: work };
  const app = workOf(() => 1);
  // @ts-expect-error: JavaScript may pass objects.
  const objects: SimulateOptions = { ...base, effects: () => [{ order: 1 }] };
  expect((await failureOf(simulate(app, objects))).message).toContain("must return texts");
  // @ts-expect-error: JavaScript may return `false`.
  const denied: SimulateOptions = { ...base, check: () => false };
  expect((await failureOf(simulate(app, denied))).message).toContain("Throw an error");
});

test("H10 FAULT-1 only the chosen kinds of faults happen", async () => {
  const { faults } = await simulated("once", undefined, { seeds: 10, faults: ["duplicate"] });
  expect(faults).toMatchObject({ crash: 0, loss: 0, delay: 0, failure: 0 });
  expect(faults.duplicate).toBeGreaterThan(5);
});
