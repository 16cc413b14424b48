/** A conversation whose surroundings misbehave: gateways that an application brought along. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ModelDelta, ModelGateway } from "../../src/adapters/types.ts";
import { defineLibrary } from "../../src/library/define.ts";
import { textPayloads } from "../support/chat-replies.ts";
import { runWorld } from "../support/crash-world.ts";
import { Crossings } from "../support/crossings.ts";

const errors = vi.spyOn(console, "error");

beforeEach(() => {
  errors.mockReset();
  errors.mockImplementation(() => undefined);
});

afterEach(() => errors.mockReset());

function run(gateway: ModelGateway, messages: string[]) {
  const options = {
    library: defineLibrary("empty", {}),
    persona: { identity: { systemPrompt: "Test." } },
    provider: () => textPayloads("unused"),
    gateway,
    messages,
  };
  return runWorld(options, new Crossings());
}

test("RUN-4 a reply too large to be stored fails its turn for good, and the conversation goes on", async () => {
  let calls = 0;
  const { turns, client } = await run(
    {
      async *stream(): AsyncGenerator<ModelDelta> {
        calls += 1;
        yield { type: "text", text: calls === 1 ? "x".repeat(33 * 1024 * 1024) : "Fine." };
        yield { type: "finish", reason: "stop" };
      },
    },
    ["Tell me everything", "Shorter, please"],
  );
  expect(turns.map(({ status, error }) => [status, error?.code])).toEqual([
    ["failed", "TOO_LARGE"],
    ["completed", undefined],
  ]);
  expect(calls).toBe(2);
  expect(client.messages.map(({ content }) => content)).toEqual([
    "Tell me everything",
    "Shorter, please",
    "Fine.",
  ]);
});

test("A43 a gateway that never answers and ignores its abort holds up no turn: three attempts, then it fails", async () => {
  let calls = 0;
  const { turns } = await run(
    {
      stream() {
        calls += 1;
        const never = new Promise<IteratorResult<ModelDelta>>(() => undefined);
        return { [Symbol.asyncIterator]: () => ({ next: () => never }) };
      },
    },
    ["Hello?"],
  );
  expect(calls).toBe(3);
  expect(turns[0]).toMatchObject({ status: "failed", error: { code: "MODEL_FAILED", retriable: true } });
  expect(turns[0]?.error?.message).toContain("timeout");
  expect(turns[0]?.latencyMs).toBe(3 * 120_000 + 500 + 1_000);
});

test("PLAN-3 a gateway that throws is an error of ours: the turn fails at once, and nothing inside is told", async () => {
  const { turns } = await run(
    {
      // biome-ignore lint/correctness/useYield: it fails before it has anything to say.
      async *stream(): AsyncGenerator<ModelDelta> {
        throw new Error("the password is swordfish");
      },
    },
    ["Hello?"],
  );
  expect(turns[0]?.status).toBe("failed");
  expect(JSON.stringify(turns)).not.toContain("swordfish");
});
