/** The rows of D1 that the inbox reads and writes. */
import { env } from "cloudflare:workers";
import { describe, expect, test } from "vitest";
import { D1Directory } from "../../src/d1/d1-directory.ts";
import { migrate } from "../../src/d1/migrate.ts";
import { type AnsweredBy, approversOf, namesOf } from "../../src/protocol/approval.ts";
import type {
  ApprovalFilter,
  ListedApproval,
  WaitingApproval,
} from "../../src/protocol/waiting-approvals.ts";
import { MAX_PAGE_BYTES } from "../../src/shared/page.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { rowsRead, rowsWritten } from "./rows-read.ts";

const START = 1_700_000_000_000;
const MINUTE = 60_000;

interface Asked extends AnsweredBy {
  kind?: WaitingApproval["kind"];
  readers?: string[];
  agent?: string;
  place?: string;
  /** The time limit in milliseconds. */
  limit?: number;
}

/** Returns the request `n` of a tenant, one millisecond after the request before. */
function requestOf(n: number, { kind = "gate", readers = ["ada"], ...asked }: Asked = {}): ListedApproval {
  const { agent = "a", place = "run", limit, rule, requester } = asked;
  const answered = { ...(rule && { rule }), ...(requester !== undefined && { requester }) };
  const common = {
    operationId: `op_${n}`,
    projectId: "p",
    ...answered,
    requestedAt: new Date(START + n).toISOString(),
    ...(limit !== undefined && { expiresAt: new Date(START + n + limit).toISOString() }),
  };
  const approval: WaitingApproval =
    kind === "tool"
      ? { kind, ...common, conversationId: place, turnId: "t", agentId: agent, name: "pay" }
      : {
          ...{ kind, ...common, runId: place, workflow: { library: "l", id: "w", version: 1 } },
          ...{ question: "human.approve", prompt: "Send it?", schema: {} },
        };
  return { approval, approvers: approversOf(answered, readers) };
}

const directory = new D1Directory(env.DB);

/** Stores requests as their places do, a hundred requests of one place at most. */
async function store(tenant: string, requests: readonly ListedApproval[]): Promise<void> {
  const places = Map.groupBy(requests, ({ approval }) =>
    approval.kind === "tool" ? approval.conversationId : approval.runId,
  );
  for (const [place, waiting] of places) await directory.putApprovals(tenant, place, 1, waiting);
}

const person = (tenant: string, subject: string, ...roles: Principal["roles"]): Principal => ({
  ...{ tenant, subject, roles },
});

describe("requests of a place in D1", () => {
  test.each<[string, Asked]>([
    ["gates", {}],
    ["calls", { kind: "tool" }],
  ])("DIR-7 %s that are answered one after the other write the rows of each answer", async (_name, asked) => {
    await migrate(env.DB);
    const tenant = crypto.randomUUID();
    const all = Array.from({ length: 100 }, (_, n) => requestOf(n, asked));
    const put = (seq: number, from: number) => () =>
      directory.putApprovals(tenant, "run", seq, all.slice(from));
    await put(1, 0)();
    for (let from = 1; from <= 20; from++) {
      const { rows, statements } = await rowsWritten(put(from + 1, from));
      expect(rows).toBeLessThanOrEqual(10);
      expect(statements).toBe(5);
    }
    const { items } = await directory.approvals(person(tenant, "ada"), { now: 0, limit: 200 });
    expect(items).toEqual(all.slice(20).map(({ approval }) => approval));
  });

  test("DIR-7 DIR-6 a request that changes is replaced, and a state that repeats writes one row", async () => {
    const tenant = crypto.randomUUID();
    const requests = Array.from({ length: 20 }, (_, n) => requestOf(n));
    const changed = requests.with(3, requestOf(3, { readers: ["ben"], limit: MINUTE }));
    await directory.putApprovals(tenant, "run", 1, requests);
    const written = async (seq: number, waiting: ListedApproval[]) =>
      (await rowsWritten(() => directory.putApprovals(tenant, "run", seq, waiting))).rows;
    expect(await written(2, requests)).toBe(1);
    expect(await written(3, changed)).toBeLessThanOrEqual(12);
    expect(await written(2, requests)).toBe(0);
    const of = async (subject: string, now = START) =>
      (await directory.approvals(person(tenant, subject, "member"), { now })).items;
    expect(await of("ben")).toEqual([changed[3]?.approval]);
    expect(await of("ben", START + 2 * MINUTE)).toEqual([]);
    expect(await of("ada")).toEqual(requests.toSpliced(3, 1).map(({ approval }) => approval));
  });
});

const RULES: AnsweredBy[] = [
  {},
  { rule: { by: "operator" } },
  { rule: { by: { users: ["ada", "eve"] } }, requester: "ada" },
  { rule: { by: { roles: ["author", "member"] } } },
  { rule: { notRequester: true }, requester: "ada" },
  { rule: { by: "requester" }, requester: "olga" },
];
const LIMITS = [undefined, 400, MINUTE, 24 * 60 * MINUTE];

/** Returns requests of each kind, each rule and each time limit, in ten places of two agents. */
function mixed(count: number): ListedApproval[] {
  return Array.from({ length: count }, (_, n) => {
    const limit = LIMITS[n % 4];
    const place = `place-${n % 10}`;
    const asked = { ...RULES[n % 6], readers: ["ada", "ben"], agent: n % 3 === 0 ? "a" : "b", place };
    return requestOf(n, {
      kind: n % 2 === 0 ? "tool" : "gate",
      ...asked,
      ...(limit !== undefined && { limit }),
    });
  });
}

const callers = (tenant: string) => ({
  participant: person(tenant, "ben"),
  requester: person(tenant, "ada", "member"),
  user: person(tenant, "eve"),
  role: person(tenant, "abe", "author"),
  operator: person(tenant, "olga", "operator"),
  admin: person(tenant, "root", "admin"),
  each: person(tenant, "olga", "member", "author", "operator"),
});

const FILTERS: ApprovalFilter[] = [
  ...[{}, { kind: "tool" as const }, { kind: "gate" as const }, { agent: "a" }, { since: START + 50 }],
  ...[{ conversation: "place-2" }, { run: "place-3" }, { run: "place-2" }],
];

describe("a page of the inbox", () => {
  test("DIR-3 DIR-6 has each request once, for each caller, with each filter, in both orders", async () => {
    const tenant = crypto.randomUUID();
    const all = mixed(60);
    await store(tenant, all);
    const now = START + 450;
    for (const [name, principal] of Object.entries(callers(tenant)))
      for (const filter of [...FILTERS, { conversation: "place-4", agent: "a" }])
        for (const order of ["asc", "desc"] as const) {
          const expected = all.filter((request) => isListed(request, principal, filter, now));
          if (order === "desc") expected.reverse();
          const found: WaitingApproval[] = [];
          for (let cursor: string | undefined; ; ) {
            const options = { ...filter, order, limit: 9, now, ...(cursor !== undefined && { cursor }) };
            const { items, nextCursor } = await directory.approvals(principal, options);
            found.push(...items);
            if (nextCursor === undefined) break;
            cursor = nextCursor;
          }
          expect(found, `${name} ${JSON.stringify(filter)} ${order}`).toEqual(
            expected.map(({ approval }) => approval),
          );
        }
  });

  test("DIR-9 DIR-3 ends with the request that brings it to 4 MiB, and the next page begins after it", async () => {
    const tenant = crypto.randomUUID();
    const all = Array.from({ length: 100 }, (_, n): ListedApproval => {
      const { approval, approvers } = requestOf(n, { place: `run-${n % 25}` });
      return { approval: { ...approval, input: { text: "ä".repeat(30_000) } }, approvers };
    });
    await store(tenant, all);
    for (const order of ["asc", "desc"] as const) {
      const found: WaitingApproval[] = [];
      for (let cursor: string | undefined; ; ) {
        const options = { order, limit: 200, now: START, ...(cursor !== undefined && { cursor }) };
        const { items, nextCursor } = await directory.approvals(person(tenant, "ada"), options);
        expect(new TextEncoder().encode(JSON.stringify(items)).byteLength).toBeLessThan(
          MAX_PAGE_BYTES + 65_536,
        );
        found.push(...items);
        if (nextCursor === undefined) break;
        expect(items.length).toBeGreaterThan(60);
        cursor = nextCursor;
      }
      const expected = all.map(({ approval }) => approval);
      expect(found).toEqual(order === "asc" ? expected : expected.toReversed());
    }
  });

  test("DIR-8 reads as many rows in a tenant with more requests, for each caller, with each filter", async () => {
    const [few, many] = [crypto.randomUUID(), crypto.randomUUID()];
    await store(few, mixed(120));
    await store(many, mixed(960));
    for (const [name, { subject, roles }] of Object.entries(callers("")))
      for (const filter of FILTERS)
        for (const order of ["asc", "desc"] as const) {
          const options = { ...filter, order, limit: 4, now: START };
          const read = (tenant: string) =>
            rowsRead(() => directory.approvals(person(tenant, subject, ...roles), options));
          // The last row of a lane costs one row less or more.
          const most = (await read(few)) + 2;
          expect(await read(many), `${name} ${JSON.stringify(filter)} ${order}`).toBeLessThanOrEqual(most);
        }
  });

  test("DIR-8 reads about as many rows as it has", async () => {
    const tenant = crypto.randomUUID();
    const rules: AnsweredBy[] = [{}, { rule: { by: { users: ["eve"], roles: ["author"] } } }];
    const all = Array.from({ length: 400 }, (_, n) =>
      requestOf(n, { ...rules[n % 2], place: `run-${n % 4}` }),
    );
    await store(tenant, all);
    const principals = [
      ...[person(tenant, "ada", "member"), person(tenant, "eve"), person(tenant, "abe", "author")],
      ...[person(tenant, "olga", "operator"), person(tenant, "root", "admin")],
    ];
    for (const principal of principals)
      for (const filter of [{}, { run: "run-0" }, { run: "run-1" }, { kind: "gate" as const }])
        for (const order of ["asc", "desc"] as const) {
          const page = () => directory.approvals(principal, { ...filter, order, limit: 10, now: START });
          const { length } = (await page()).items;
          const label = `${principal.subject} ${JSON.stringify(filter)} ${order}: ${length}`;
          // For each request its key, its row and its place in the queue; a few rows for each name; and the request that follows.
          expect(await rowsRead(page), label).toBeLessThanOrEqual(3 * (length + 1) + 30);
        }
  });

  test("DIR-8 reads no request that another participant must answer", async () => {
    const tenant = crypto.randomUUID();
    const asked: Asked = { rule: { notRequester: true }, requester: "ada", readers: ["ada", "ben"] };
    await store(
      tenant,
      Array.from({ length: 100 }, (_, n) => requestOf(n, asked)),
    );
    const page = (subject: string) => () =>
      directory.approvals(person(tenant, subject), { limit: 5, now: START });
    expect((await page("ben")()).items).toHaveLength(5);
    expect((await page("ada")()).items).toEqual([]);
    expect(await rowsRead(page("ada"))).toBeLessThanOrEqual(10);
  });

  test("DIR-8 reads no request that expired long ago", async () => {
    const tenant = crypto.randomUUID();
    const day = 24 * 60 * MINUTE;
    const expired = Array.from({ length: 300 }, (_, n) =>
      requestOf(n, { limit: [400, MINUTE, day][n % 3] ?? 0 }),
    );
    const live = Array.from({ length: 12 }, (_, n) =>
      requestOf(10 * day + n, { place: "new", ...(n % 2 === 0 && { limit: day }) }),
    );
    await store(tenant, [...expired, ...live]);
    for (const principal of [person(tenant, "ada"), person(tenant, "olga", "operator")])
      for (const order of ["asc", "desc"] as const) {
        const options = { order, limit: 20, now: START + 10 * day + 100 };
        const page = () => directory.approvals(principal, options);
        expect((await page()).items).toHaveLength(12);
        expect(await rowsRead(page)).toBeLessThanOrEqual(3 * 13 + 30);
      }
  });
});

function isListed(
  { approval, approvers }: ListedApproval,
  principal: Principal,
  { kind, agent, conversation, run, since = 0 }: ApprovalFilter,
  now: number,
): boolean {
  const { rule, requester, expiresAt, requestedAt } = approval;
  const place =
    approval.kind === "tool" ? { conversation: approval.conversationId } : { run: approval.runId };
  return (
    namesOf(principal).some((name) => approvers.includes(name)) &&
    !(rule?.notRequester === true && requester === principal.subject) &&
    (expiresAt === undefined || Date.parse(expiresAt) > now) &&
    Date.parse(requestedAt) >= since &&
    (kind === undefined || approval.kind === kind) &&
    (agent === undefined || (approval.kind === "tool" && approval.agentId === agent)) &&
    (conversation === undefined || place.conversation === conversation) &&
    (run === undefined || place.run === run)
  );
}
