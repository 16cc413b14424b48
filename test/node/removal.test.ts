/** The job that removes a deleted actor's storage, with stores that fail and crashes at every step. */
import { globSync, readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { Removal, type RemovalStep } from "../../src/agents/base/removal/removal.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";

interface Durable {
  left: string[];
  /** The contents of the stores, by step. */
  stores: Record<string, string>;
}

const NAMES = ["calls", "rows", "objects", "own"];

function life(
  durable: Durable,
  {
    fails = new Set<string>(),
    silent = new Set<string>(),
    dies = (_place: string): boolean => false,
    clock = new VirtualClock(),
  } = {},
) {
  const armed: number[] = [];
  const die = (place: string) => {
    if (dies(place)) throw new Error(`crash ${place}`);
  };
  let isDead = false;
  const steps = NAMES.map(
    (name): RemovalStep => ({
      name,
      ...(name === "own" ? { isAfterAll: true } : {}),
      async run() {
        if (isDead) return 1;
        if (silent.has(name)) return new Promise<never>(() => undefined);
        if (fails.has(name)) throw new Error("The store is down.");
        try {
          die(`before ${name}`);
          delete durable.stores[name];
          die(`after ${name}`);
        } catch (error) {
          isDead = true;
          throw error;
        }
        return undefined;
      },
    }),
  );
  const removal = new Removal({
    clock,
    wakeup: {
      arm: async (milliseconds) => {
        armed.push(milliseconds);
      },
      disarm: () => undefined,
    },
    left: () => durable.left,
    done: (name) => {
      durable.left = durable.left.filter((other) => other !== name);
    },
    steps: () => steps,
  });
  return { removal, armed };
}

const deleted = (): Durable => ({
  left: [...NAMES],
  stores: Object.fromEntries(NAMES.map((name) => [name, "content"])),
});

describe("the removal of a deleted actor", () => {
  const places = NAMES.flatMap((name) => [`before ${name}`, `after ${name}`]);

  test.each(places)("G8 REMOVE-1 REMOVE-2 ends after a crash %s", async (place) => {
    vi.spyOn(console, "error").mockReturnValue(undefined);
    const durable = deleted();
    await life(durable, { dies: (at: string) => at === place }).removal.run();
    expect(durable.left).not.toEqual([]);
    const { removal } = life(durable);
    expect(removal.wake()).not.toBeNull();
    await removal.run();
    expect(durable).toEqual({ left: [], stores: {} });
    expect(removal.wake()).toBeNull();
  });

  test("G8 REMOVE-1 REMOVE-3 a failing store delays its own step and the last step, and is retried", async () => {
    vi.spyOn(console, "error").mockReturnValue(undefined);
    const durable = deleted();
    const fails = new Set(["rows"]);
    const { removal } = life(durable, { fails });
    await removal.run();
    expect(durable.left).toEqual(["rows", "own"]);
    const pauses = Array.from({ length: 8 }, () => removal.wake());
    expect(pauses[0]).toBe(30_000);
    expect(pauses.at(-1)).toBe(15 * 60_000);
    await removal.run();
    expect(durable.left).toEqual(["rows", "own"]);
    fails.clear();
    await removal.run();
    expect(durable).toEqual({ left: [], stores: {} });
  });

  test("REMOVE-1 a silent step delays itself and the last step, and the others continue", async () => {
    vi.spyOn(console, "error").mockReturnValue(undefined);
    const durable = deleted();
    const clock = new VirtualClock();
    const silent = new Set(["calls"]);
    const { removal } = life(durable, { silent, clock });
    const running = removal.run();
    await clock.advance(30_000);
    await running;
    expect(durable.left).toEqual(["calls", "own"]);
    silent.clear();
    await removal.run();
    expect(durable).toEqual({ left: [], stores: {} });
  });
});

test("REMOVE-4 objects are written only under the prefixes of conversations and agents, which the registry empties, and of repositories", () => {
  const writes = globSync("src/**/*.ts").filter((file) =>
    /\b(?:objects|bucket)(?:\(\))?\??\.put\(/.test(readFileSync(file, "utf8")),
  );
  const keys = {
    "src/attachments/attachment-store.ts": /`\$\{encodeURIComponent\(tenant\)\}\/\$\{conversationId\}\//,
    // Its keys are made by `MemoryTexts`.
    "src/memory/corpus/copies.ts": /objectKey/,
    // Packs belong to a project, and stay when a conversation or an agent is removed.
    "src/git/stored-packs.ts": /`git\/\$\{\[tenant, project, repo\]/,
  };
  const ports = ["src/attachments/objects-in-time.ts", "src/ports/workers/r2-object-store.ts"];
  expect(writes.sort()).toEqual([...Object.keys(keys), ...ports].sort());
  for (const [file, key] of Object.entries(keys)) expect(readFileSync(file, "utf8")).toMatch(key);
  const corpus = readFileSync("src/memory/corpus/memory-texts.ts", "utf8");
  expect(corpus).toMatch(/`\$\{encodeURIComponent\(tenant\)\}\/\$\{agentId\}\/memories\//);
});
