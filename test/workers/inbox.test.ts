/** The inbox: the calls of tools and the gates that wait for a person, on the real Worker. */
import { env } from "cloudflare:workers";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { createClient } from "../../src/client/http.ts";
import type { WaitingApproval } from "../../src/protocol/waiting-approvals.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { call, post } from "./run-helpers.ts";
import { createAgent, createConversation, request, skipInvariants } from "./world.ts";

const person = (subject: string, ...roles: Principal["roles"]): Principal => ({
  subject,
  tenant: "test",
  roles,
});
const ADA = person("ada", "member");
const BEN = person("ben", "member");
const CAROL = person("carol", "member");
const OLGA = person("olga", "operator");
const ARON = person("aron", "author");
const EVERYONE = { ada: ADA, ben: BEN, carol: CAROL, olga: OLGA, aron: ARON };
const identity = { systemPrompt: "Test.", modelProfileId: "test/scripted" };
const agents: Record<string, string> = {};

const RULES = {
  open: "always",
  mine: { by: "requester" },
  others: { notRequester: true },
  staff: { by: "operator" },
  carol: { by: { users: ["carol"] } },
  authors: { by: { roles: ["author"] } },
};

beforeAll(async () => {
  for (const [id, approval] of Object.entries(RULES)) {
    const body = { id, name: id, description: "Pays.", target: { task: "test/transfer" }, approval };
    const made = await request("/api/libraries/inbox/tools", { method: "POST", body: JSON.stringify(body) });
    expect(made.status, await made.clone().text()).toBe(201);
    agents[id] = await createAgent({ identity, tools: { toolIds: [`inbox/${id}`] } });
  }
});

/** Begins a turn of Ada with a call that waits for a person. Ben takes part. */
async function beginApproval(tool: string) {
  const conversation = await createConversation(agents[tool] ?? "");
  const join = { method: "POST", body: JSON.stringify({ type: "user", id: "ben" }) };
  expect((await request(`${conversation.path}/participants`, join)).status).toBe(200);
  const client = await conversation.connect();
  const { turnId } = await conversation.play((key) => ({
    replies: [[{ call: tool, input: { key, to: "Bob" } }], [{ text: "Done." }]],
  }));
  const { operationId = "" } = await client.frame("approval.requested");
  return { conversation, turnId, operationId };
}

async function gate(approval?: object) {
  const id = `asks_${crypto.randomUUID().slice(0, 8)}`;
  const action = { kind: "human.approve", prompt: "Send it?", ...(approval && { approval }) };
  const body = { id, inputSchema: { type: "object" }, steps: [{ ref: "ask", action }] };
  const made = await request("/api/libraries/flows/tasks", { method: "POST", body: JSON.stringify(body) });
  expect(made.status, await made.clone().text()).toBe(201);
  const workflow = await post({
    initialNode: "ask",
    nodes: [{ ref: "ask", task: `flows/${id}`, inputMapping: {} }],
  });
  const run = await call("POST", "", 201, { workflow, input: { key: "k" } }, ADA);
  const [found] = await vi.waitUntil(
    async () => {
      const { gates } = await call("GET", `/${run.id}`, 200);
      return gates.length > 0 && gates;
    },
    { timeout: 20_000 },
  );
  return { runId: run.id, operationId: found?.operationId ?? "" };
}

async function list(
  principal: Principal,
  query = "",
): Promise<{ approvals: WaitingApproval[]; nextCursor?: string }> {
  const response = await request(`/api/approvals?${query}`, {}, principal);
  expect(response.status, await response.clone().text()).toBe(200);
  return response.json();
}

const idsOf = async (principal: Principal, query = "limit=200") =>
  (await list(principal, query)).approvals.map(({ operationId }) => operationId);

/** Returns the people who see a request in their inbox. */
async function listedFor(operationId: string): Promise<string[]> {
  const found: string[] = [];
  for (const [name, principal] of Object.entries(EVERYONE))
    if ((await idsOf(principal)).includes(operationId)) found.push(name);
  return found;
}

describe("the inbox", () => {
  test.each<[string, string[]]>([
    ["open", ["ada", "ben", "olga"]],
    ["mine", ["ada"]],
    ["others", ["ben", "olga"]],
    ["staff", ["olga"]],
    ["carol", ["carol"]],
    ["authors", ["aron"]],
  ])(
    "DIR-6 I1 lists a call with the rule %s for the people who may answer, until it is answered",
    async (tool, people) => {
      const { conversation, turnId, operationId } = await beginApproval(tool);
      await expect.poll(() => listedFor(operationId)).toEqual(people);
      expect(await idsOf({ ...OLGA, subject: "ada", tenant: "globex", roles: ["admin"] })).toEqual([]);
      const [first = ""] = people;
      const reader = Object.entries(EVERYONE).find(([name]) => name === first)?.[1] ?? ADA;
      const { approvals } = await list(reader, `conversation=${conversation.id}`);
      expect(approvals).toMatchObject([
        {
          ...{ kind: "tool", operationId, turnId, conversationId: conversation.id, agentId: agents[tool] },
          ...{ name: tool, target: "test/transfer", input: { to: "Bob" }, projectId: "default" },
          requestedAt: expect.stringMatching(/Z$/),
          expiresAt: expect.stringMatching(/Z$/),
        },
      ]);
      const init = { method: "POST", body: JSON.stringify({ approved: false }) };
      const path = `${conversation.path}/operations/${operationId}/approval`;
      expect((await request(path, init, reader)).status).toBe(200);
      await expect.poll(() => listedFor(operationId)).toEqual([]);
    },
  );

  test.each<[string, object | undefined, string[]]>([
    ["no rule", undefined, ["ada", "olga"]],
    ["by others", { notRequester: true }, ["olga"]],
    ["by carol", { by: { users: ["carol"] } }, ["carol"]],
  ])(
    "DIR-6 I1 lists a gate with %s for the people who may answer, until it is answered",
    async (_name, rule, people) => {
      const { runId, operationId } = await gate(rule);
      await expect.poll(() => listedFor(operationId)).toEqual(people);
      const [first = ""] = people;
      const reader = Object.entries(EVERYONE).find(([name]) => name === first)?.[1] ?? ADA;
      expect((await list(reader, `run=${runId}`)).approvals).toMatchObject([
        {
          kind: "gate",
          operationId,
          runId,
          node: "ask",
          question: "human.approve",
          prompt: "Send it?",
          input: {},
        },
      ]);
      await call("POST", `/${runId}/gates/${operationId}`, 200, { answer: { approved: true } }, reader);
      await expect.poll(() => listedFor(operationId)).toEqual([]);
    },
  );

  test("DIR-3 I1 has filters and pages, over HTTP and in the client", async () => {
    const calls = [await beginApproval("mine"), await beginApproval("mine"), await beginApproval("open")];
    const asking = await gate();
    const since = new Date(Date.now() - 600_000).toISOString();
    const all = [...calls, asking].map(({ operationId }) => operationId);
    // Other test files begin requests of Ada at the same time.
    const own = (ids: readonly string[]) => ids.filter((id) => all.includes(id));
    await expect.poll(() => idsOf(ADA)).toEqual(expect.arrayContaining(all));
    expect(own(await idsOf(ADA))).toEqual(all);
    expect(own(await idsOf(ADA, "limit=200&order=desc"))).toEqual(all.toReversed());
    const paged: string[] = [];
    for (let cursor = ""; ; ) {
      const { approvals, nextCursor } = await list(ADA, `limit=1${cursor}`);
      paged.push(...approvals.map(({ operationId }) => operationId));
      if (nextCursor === undefined) break;
      cursor = `&cursor=${nextCursor}`;
    }
    expect(own(paged)).toEqual(all);
    expect(paged).toEqual([...new Set(paged)]);
    const kinds = async (query: string) =>
      new Set((await list(ADA, query)).approvals.map(({ kind }) => kind));
    expect([...(await kinds("kind=tool"))]).toEqual(["tool"]);
    expect([...(await kinds("kind=gate"))]).toEqual(["gate"]);
    expect(await idsOf(ADA, `agent=${agents.mine}`)).toEqual(
      calls.slice(0, 2).map(({ operationId }) => operationId),
    );
    expect(await idsOf(ADA, `conversation=${calls[2]?.conversation.id}`)).toEqual([calls[2]?.operationId]);
    expect(await idsOf(ADA, `run=${asking.runId}`)).toEqual([asking.operationId]);
    expect(await idsOf(ADA, `conversation=${asking.runId}`)).toEqual([]);
    expect(own(await idsOf(ADA, `limit=200&since=${since}`))).toEqual(all);
    expect(await idsOf(ADA, `since=${new Date(Date.now() + 60_000).toISOString()}`)).toEqual([]);
    for (const query of ["kind=text", "since=yesterday", "limit=0", "cursor=x"])
      expect((await request(`/api/approvals?${query}`, {}, ADA)).status, query).toBe(422);
    const refused = await request("/api/approvals?status=open", {}, ADA);
    expect([refused.status, await refused.json()]).toMatchObject([400, { code: "UNKNOWN_PARAMETER" }]);
    const client = createClient({
      baseUrl: "http://dramatis.test",
      fetch: (url, init) => request(new URL(url).pathname + new URL(url).search, init, ADA),
    });
    const listed = await client.approvals.list({ kind: "tool", agent: agents.mine ?? "", since });
    expect(listed.approvals.map(({ operationId }) => operationId)).toEqual(
      calls.slice(0, 2).map(({ operationId }) => operationId),
    );
    for (const { conversation, turnId } of calls) await conversation.stop(turnId);
    await expect.poll(async () => own(await idsOf(ADA, "kind=tool&limit=200"))).toEqual([]);
    await call("POST", `/${asking.runId}/cancel`, 200);
    await expect.poll(() => idsOf(ADA, `run=${asking.runId}`)).toEqual([]);
  });

  test("INBOX-1 PUB-1 I1 while the directory fails, calls wait and are answered; the list is complete afterwards", async () => {
    await idsOf(ADA);
    await env.DB.exec("ALTER TABLE approvers RENAME TO approvers_away");
    const [kept, answered] = await (async () => {
      try {
        const both = [await beginApproval("staff"), await beginApproval("staff")] as const;
        expect((await request("/api/approvals", {}, OLGA)).status).toBe(503);
        const { conversation, operationId, turnId } = both[1];
        const init = { method: "POST", body: JSON.stringify({ approved: true }) };
        const path = `${conversation.path}/operations/${operationId}/approval`;
        expect((await request(path, init, OLGA)).status).toBe(200);
        expect((await conversation.ended(turnId)).answer).toBe("Done.");
        return both;
      } finally {
        await env.DB.exec("ALTER TABLE approvers_away RENAME TO approvers");
      }
    })();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    try {
      for (const { conversation } of [kept, answered]) await conversation.wake();
      await expect.poll(() => idsOf(OLGA)).toContain(kept.operationId);
      expect(await idsOf(OLGA)).not.toContain(answered.operationId);
    } finally {
      vi.useRealTimers();
    }
  });

  test("REMOVE-5 I1 has no entry of a deleted conversation", async () => {
    const { conversation, operationId } = await beginApproval("staff");
    await expect.poll(() => idsOf(OLGA)).toContain(operationId);
    skipInvariants(conversation);
    expect((await request(conversation.path, { method: "DELETE" })).status).toBe(204);
    await expect.poll(() => idsOf(OLGA)).not.toContain(operationId);
  });
});
