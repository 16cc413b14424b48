/** I12 on real processes: a runtime delegates to another over A2A, and `kill -9` hits both. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, it, onTestFinished, vi } from "vitest";
import { createClient } from "../../src/client/index.ts";
import { mulberry32 } from "../../src/shared/mulberry32.ts";
import { npmStart, type RunningStart } from "../support/npm-start.ts";
import { killAll, processTree, runsTheWorker } from "../support/processes.ts";

/** Time for a restart, in milliseconds. */
const RESTART_MS = 90_000;
const ROUNDS = 4;
const folder = mkdtempSync(join(tmpdir(), "dramatis-a2a-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Kills the process that runs the Worker. */
async function killWorker({ npm, url }: RunningStart): Promise<void> {
  const workers = processTree(npm.pid ?? 0).filter((process) => runsTheWorker(process, url));
  await killAll(workers.map(({ pid }) => pid));
}

it("A2ACALL-4 A2ATASK-1 each call has one task, its result arrives once, and the tasks have one context", async () => {
  const partner = await npmStart(join(folder, "partner"));
  const own = await npmStart(join(folder, "own"), { DRAMATIS_HTTP_HOSTS: new URL(partner.url).host });
  onTestFinished(async () => void (await Promise.all([own.stop(), partner.stop()])));
  const [client, remote] = [own, partner].map(({ url }) => createClient({ baseUrl: url })) as [
    ReturnType<typeof createClient>,
    ReturnType<typeof createClient>,
  ];
  const random = mulberry32(12);
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const response = await fetch(own.url + path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status, await response.clone().text()).toBe(201);
  };
  const target = { a2a: `${partner.url}/a2a/assistant` };
  await post("/api/libraries/partners/tools", { id: "ask", name: "ask", description: "Asks.", target });
  await post("/api/agents", {
    id: "clerk",
    persona: { identity: { systemPrompt: "You ask." }, tools: { toolIds: ["partners/ask"] } },
  });
  const answered = async <Value>(request: () => Promise<Value>): Promise<Value> =>
    vi.waitFor(request, { timeout: RESTART_MS, interval: 200 });
  const { id } = await client.conversations.create({ agentId: "clerk" });
  for (let round = 1; round <= ROUNDS; round++) {
    const content = `!tool ask {"message": "!slow 20 ${20 * round}"}`;
    const send = () => client.turns.start(id, { content, idempotencyKey: `round-${round}` });
    const sent = send().catch(() => undefined);
    await pause(random() * 800);
    await killWorker(round % 2 === 0 ? own : partner);
    await pause(random() * 2_000);
    await killWorker(round % 2 === 0 ? partner : own);
    await sent;
    const { turnId } = await answered(send);
    await answered(async () => expect((await client.turns.get(id, turnId)).status).toBe("completed"));
    const { moves } = await client.turns.get(id, turnId);
    const results = moves.flatMap(({ toolResult }) => toolResult ?? []);
    expect(results).toMatchObject([{ success: true, result: expect.stringMatching(/^word-1 .*word-20$/) }]);
  }
  const { conversations } = await answered(() => remote.conversations.list());
  expect(conversations).toHaveLength(1);
  const { turns } = await remote.turns.list({ conversation: conversations[0]?.id ?? "" });
  expect(turns.map(({ status }) => status)).toEqual(Array(ROUNDS).fill("completed"));
}, 280_000);
