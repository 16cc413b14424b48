/** The starts that a trigger asks of the actors. */
import { describe, expect, test } from "vitest";
import type { Firing } from "../../src/agents/trigger/core/record.ts";
import { type StartPorts, start } from "../../src/agents/trigger/effects/start.ts";
import type { ConversationActor } from "../../src/protocol/actor-lookup.ts";
import type { CoordinatorApi } from "../../src/protocol/coordinator-api.ts";

/** Actors that record their requests. */
function world(mayAct: StartPorts["mayAct"] = () => true) {
  const asked: unknown[] = [];
  const recording = (method: string, value: object) => ({
    [method]: async (...request: unknown[]) => {
      asked.push(request);
      return { ok: true, value };
    },
  });
  const actors = {
    // SAFETY: only these methods are called.
    coordinator: async () => recording("start", {}) as unknown as CoordinatorApi,
    conversation: async () => recording("startTurn", { turnId: "turn_1" }) as unknown as ConversationActor,
  };
  return { ports: { actors, mayAct }, asked };
}

const firing = (changes: Partial<Firing> = {}): Firing => ({
  id: "trig_01JD0000000000000000000000_eu",
  tenant: "acme",
  actsAs: "ada",
  key: "2026-01-01T00:00:00.000Z",
  starts: { workflow: "lib/flow", input: { n: 1 } },
  ...changes,
});

const ADA = { subject: "ada", tenant: "acme", roles: [] };

describe("G13 FIRE-6 FIRE-7 a start", () => {
  test("of a run has an id of trigger and key alone, in the jurisdiction of the trigger, and no roles", async () => {
    const { ports, asked } = world();
    const first = await start(ports, firing());
    expect(first).toEqual({ runId: expect.stringMatching(/^run_[0-9A-HJKMNP-TV-Z]{26}_eu$/) });
    expect(await start(ports, firing())).toEqual(first);
    for (const other of [{ key: "2026-01-02T00:00:00.000Z" }, { tenant: "other" }])
      expect(await start(ports, firing(other))).not.toEqual(first);
    expect(asked[0]).toEqual([
      ADA,
      {
        id: (first as { runId: string }).runId,
        workflow: "lib/flow",
        input: { n: 1 },
        idempotencyKey: "trig_01JD0000000000000000000000_eu:2026-01-01T00:00:00.000Z",
        correlationId: "trig_01JD0000000000000000000000_eu:2026-01-01T00:00:00.000Z",
      },
    ]);
    expect(asked[1]).toEqual(asked[0]);
  });

  test("of a turn has the same key", async () => {
    const { ports, asked } = world();
    const starts = { conversationId: "conv_1", content: "Hi.", to: "guide" };
    expect(await start(ports, firing({ starts }))).toEqual({ conversationId: "conv_1", turnId: "turn_1" });
    expect(asked).toEqual([
      [ADA, { content: "Hi.", to: "guide", idempotencyKey: expect.stringContaining(":2026-01-01T00:00") }],
    ]);
  });

  test("is refused if the application forbids the subject", async () => {
    const { ports, asked } = world(({ subject }) => subject !== "ada");
    await expect(start(ports, firing())).rejects.toMatchObject({ code: "FORBIDDEN" });
    expect(asked).toEqual([]);
    await start(ports, firing({ actsAs: "bob" }));
  });
});
