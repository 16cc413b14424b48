/** A D1 database that never answers: every query of the project fails in time. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Copy } from "../../src/agents/base/copies/copy.ts";
import { D1Definitions } from "../../src/d1/d1-definitions.ts";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { MIGRATIONS } from "../../src/d1/d1-tables.ts";
import { D1DeadLetters } from "../../src/d1/dead-letters.ts";
import { D1_TIMEOUT_MS } from "../../src/d1/in-time.ts";
import { CODE_TENANT } from "../../src/library/registry/definition-source.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { Principal } from "../../src/shared/principal.ts";

const errors = vi.spyOn(console, "error");
beforeEach(() => void errors.mockImplementation(() => undefined));
afterEach(() => void errors.mockReset());

/** A database that answers the first `answers` requests, the requests of its migration. */
function database(answers: number) {
  let asked = 0;
  const names = MIGRATIONS.map(({ name }) => ({ name }));
  const answer = () => {
    asked += 1;
    return asked <= answers
      ? Promise.resolve([{ results: [] }, { results: names }])
      : new Promise(() => undefined);
  };
  const statement = { bind: () => statement, all: answer, first: answer, run: answer };
  // SAFETY: the members that the queries use.
  return { prepare: () => statement, batch: answer } as unknown as D1Database;
}

const AT = "2026-01-01T00:00:00.000Z";
const PRINCIPAL: Principal = { tenant: "t", subject: "ada", roles: ["admin"] };
const LETTER = { id: "op_1" } as Parameters<D1DeadLetters["put"]>[1];
const KEY = { library: "lib", id: "tool" };
const ADDED = { ...KEY, kind: "tool", hash: "h", definition: {} } as unknown as Parameters<
  D1Definitions["add"]
>[0];
const CONVERSATION = { id: "c", title: null, agentId: "a", projectId: "p", participants: [], createdAt: AT };
const AGENT = {
  id: "a",
  tenant: "t",
  persona: KEY,
  projectIds: [],
  createdAt: AT,
  updatedAt: AT,
} as unknown as Parameters<D1Directory["putAgent"]>[0];
const RUN: Parameters<D1Directory["putRun"]>[1] = {
  id: "r",
  workflow: { library: "l", id: "w", version: 1 },
  projectId: "p",
  status: "running",
  startedBy: "ada",
  createdAt: AT,
  seq: 1,
};
const USAGE = { calls: 1, inputTokens: 1, cachedInputTokens: 0, outputTokens: 1, nanoDollars: 0 };

type Ask = (database: D1Database, clock: VirtualClock) => Promise<unknown>;
const directory =
  (ask: (directory: D1Directory) => Promise<unknown>): Ask =>
  (db, clock) =>
    ask(new D1Directory(db, clock));
const letters =
  (ask: (letters: D1DeadLetters) => Promise<unknown>): Ask =>
  (db, clock) =>
    ask(new D1DeadLetters(db, clock));
const definitions =
  (ask: (definitions: D1Definitions) => Promise<unknown>): Ask =>
  (db, clock) =>
    ask(new D1Definitions(db, CODE_TENANT, clock));

const QUERIES: [name: string, ask: Ask][] = [
  ["an agent is published", directory((d1) => d1.putAgent(AGENT))],
  ["a conversation is published", directory((d1) => d1.putConversation("t", CONVERSATION, 1))],
  [
    "usage is published",
    directory((d1) => d1.putUsage({ tenant: "t", agentId: "a", conversationId: "c", ...USAGE })),
  ],
  ["a run is published", directory((d1) => d1.putRun("t", RUN))],
  ["runs are listed", directory((d1) => d1.runs(PRINCIPAL, { status: "failed" }))],
  ["requests for approval are published", directory((d1) => d1.putApprovals("t", "c", 1, []))],
  ["requests for approval are listed", directory((d1) => d1.approvals(PRINCIPAL, { now: 0 }))],
  ["usage is read", directory((d1) => d1.usage("t", "a"))],
  ["agents are listed", directory((d1) => d1.agents("t"))],
  ["conversations are listed", directory((d1) => d1.conversations(PRINCIPAL))],
  ["a dead letter is published", letters((d1) => d1.put("t", LETTER))],
  ["a dead letter is removed", letters((d1) => d1.remove("t", "op_1"))],
  ["dead letters are listed", letters((d1) => d1.list("t"))],
  ["a dead letter is looked up", letters((d1) => d1.find("t", "op_1"))],
  ["a definition is added", definitions((d1) => d1.add(ADDED, PRINCIPAL))],
  ["definitions are published", definitions((d1) => d1.publish([ADDED]))],
  ["definitions are listed", definitions((d1) => d1.list("tool", "lib"))],
  ["the ids of definitions are listed", definitions((d1) => d1.ids("tool", "lib", 10))],
  ["the versions of a definition are listed", definitions((d1) => d1.versions("tool", KEY))],
];

describe.each([
  ["from the first statement of its migration on", 0],
  ["once it is migrated", 1],
])("INTIME-1 a database that never answers, %s", (_, answers) => {
  test.each(QUERIES)("ends in time when %s", async (_name, ask) => {
    const clock = new VirtualClock();
    const ended = ask(database(answers), clock).then(
      () => "answered",
      (error: unknown) => error,
    );
    await clock.advance(D1_TIMEOUT_MS);
    const hangs = new Promise((resolve) => setTimeout(resolve, 200, "hangs"));
    expect(await Promise.race([ended, hangs])).toMatchObject({ code: "UNAVAILABLE", retriable: true });
    expect(clock.pending).toBe(0);
  });
});

test("INTIME-1 PUB-1 a publication waits no longer than that, and is repeated once the database answers again", async () => {
  const clock = new VirtualClock();
  let d1 = database(1);
  const puts: number[] = [];
  const copy = new Copy({
    clock,
    directory: () => new D1Directory(d1, clock),
    put: (directory) => {
      puts.push(clock.now());
      return directory.putConversation("t", CONVERSATION, 1);
    },
    wakeup: { arm: async () => undefined, disarm: () => undefined },
  });
  await copy.note();
  const published = copy.publish();
  await clock.advance(D1_TIMEOUT_MS);
  await published;
  d1 = database(2);
  await clock.advance(60_000);
  copy.wake();
  await copy.publish();
  expect(puts).toHaveLength(2);
  expect(copy.wake()).toBeNull();
});
