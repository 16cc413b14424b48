/** The requests of an actor that the directory lists. */
import { expect, test } from "vitest";
import { approvalsCopy } from "../../src/agents/base/copies/approvals-copy.ts";
import type { Directory } from "../../src/d1/directory.ts";
import type { ListedApproval } from "../../src/protocol/waiting-approvals.ts";
import { utf8Length } from "../../src/shared/utf8.ts";

/** Publishes waiting requests. Returns the requests that the directory gets. */
async function listed(waiting: ListedApproval[]): Promise<readonly ListedApproval[]> {
  let found: readonly ListedApproval[] = [];
  const directory: Pick<Directory, "putApprovals"> = {
    putApprovals: async (_tenant, _place, _seq, requests) => {
      found = requests;
    },
  };
  const copy = approvalsCopy({
    clock: { now: () => 0 },
    wakeup: { arm: async () => undefined, disarm: async () => undefined },
    // SAFETY: the copy calls this method only.
    directory: () => directory as Directory,
    waiting: () => ({ tenant: "t", place: "run", seq: 1, waiting }),
  });
  await copy.note();
  await copy.publish();
  return found;
}

function gate(
  n: number,
  more: { prompt?: string; input?: string; approvers?: string[] } = {},
): ListedApproval {
  const { prompt = "Well?", input, approvers = ["role:operator"] } = more;
  const approval = {
    ...{ kind: "gate" as const, operationId: `op_${n}`, projectId: "p", runId: "run" },
    workflow: { library: "l", id: "w", version: 1 },
    ...{ question: "human.approve" as const, prompt, schema: {}, requestedAt: "2026-01-01T00:00:00.000Z" },
    ...(input !== undefined && { input: { text: input } }),
  };
  return { approval, approvers };
}

const hundred = (more: Parameters<typeof gate>[1]) => Array.from({ length: 100 }, (_, n) => gate(n, more));

test.each<[string, Parameters<typeof gate>[1]]>([
  ["long prompts", { prompt: "é".repeat(20_000) }],
  ["many approvers", { approvers: Array.from({ length: 100 }, (_, n) => `user:${n}`.padEnd(300, "x")) }],
])(
  "INBOX-2 requests with %s fit into a value of the database, the first requests first",
  async (_name, more) => {
    const waiting = hundred(more);
    const found = await listed(waiting);
    expect(found.length).toBeGreaterThan(20);
    expect(found).toEqual(waiting.slice(0, found.length));
    expect(utf8Length(JSON.stringify(found))).toBeLessThanOrEqual(1_500_000);
  },
);

test("INBOX-2 a request that does not fit is listed if it is the first", async () => {
  const waiting = [gate(0, { approvers: ["x".repeat(1_600_000)] }), gate(1)];
  expect(await listed(waiting)).toEqual(waiting.slice(0, 1));
});

test.each(["x", "é", "語", "🦊", "\u0001"])(
  "INBOX-2 the longest prompt of %j is cut, and fits",
  async (character) => {
    const found = await listed([
      gate(0, { prompt: character.repeat(1_000_000 / character.length) }),
      gate(1),
    ]);
    expect(found).toHaveLength(2);
    expect(found).toMatchObject([{ approval: { prompt: expect.stringMatching(/…$/) } }, gate(1)]);
    expect(utf8Length(JSON.stringify(found))).toBeLessThanOrEqual(400_000);
  },
);

test("INBOX-2 requests are listed without inputs that are large alone or together", async () => {
  const found = await listed([
    gate(0, { input: "x".repeat(70_000) }),
    ...hundred({ input: "x".repeat(9_000) }),
  ]);
  const withInput = found.map(({ approval }) => approval.input !== undefined);
  expect(found).toHaveLength(100);
  expect(withInput[0]).toBe(false);
  expect(withInput.slice(1).filter(Boolean).length).toBe(Math.floor((512 * 1024) / 9_011));
});
