/** The simulation of an application of a user, and defects that are planted in its tools. */
import { expect, test } from "vitest";
import { z } from "zod";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define/define.ts";
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

test("H10 FAULT-1 only the chosen kinds of faults happen", async () => {
  const { faults } = await simulated("once", undefined, { seeds: 10, faults: ["duplicate"] });
  expect(faults).toMatchObject({ crash: 0, loss: 0, delay: 0, failure: 0 });
  expect(faults.duplicate).toBeGreaterThan(5);
});
