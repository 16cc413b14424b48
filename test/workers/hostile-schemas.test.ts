/** A hundred hostile schemas, patterns and shapes of each kind: each is refused or its turn ends, and others are served. */
import { beforeAll, describe, expect, test } from "vitest";
import { HOSTILE_SHAPES } from "../support/hostile-json.ts";
import {
  HOSTILE_CALLS,
  HOSTILE_PATTERNS,
  HOSTILE_SCHEMAS,
  HOSTILE_TOOLS,
  type HostileCase,
} from "../support/hostile-schemas.ts";
import {
  ADMIN,
  createAgent,
  createConversation,
  get,
  post,
  problemSchema,
  STRANGER,
  send,
} from "./http-client.ts";
import { Play } from "./provider.ts";
import { sign, TokenServer } from "./token-server.ts";

const COUNT = 100;
const AT_ONCE = 4;

/** Conversations of the attacker, one for each request at the same time, and one of another tenant. */
let targets: string[];
let bystander: string;

beforeAll(async () => {
  const agent = (await post("/api/agents", { persona: "test/plain" })).body.id;
  targets = await Promise.all(Array.from({ length: AT_ONCE }, () => createConversation(agent)));
  bystander = await createConversation(await createAgent(undefined, STRANGER), STRANGER);
});

/** Sends bodies, some at the same time, and a plain request of the other tenant after each. Counts the outcomes. */
async function outcomes(bodies: readonly string[], length = COUNT): Promise<Record<string, number>> {
  const left = Array.from({ length }, (_, n) => bodies[n % bodies.length] ?? "");
  const counts: Record<string, number> = { served: 0 };
  const count = (outcome: string) => {
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  };
  await Promise.all(
    targets.map(async (target) => {
      for (let body = left.pop(); body !== undefined; body = left.pop()) {
        count(await outcome(target, body));
        if ((await get(`/api/conversations/${bystander}`, STRANGER)).status === 200) count("served");
      }
    }),
  );
  return counts;
}

/** Returns the code of a refusal, or how the turn ended. */
async function outcome(target: string, body: string): Promise<string> {
  const init = { method: "POST", headers: { accept: "text/event-stream" }, body };
  const response = await send(`/api/conversations/${target}/turns`, init, ADMIN);
  const text = await response.text();
  if (response.status >= 400) return problemSchema.parse(JSON.parse(text)).code;
  return /"type":"turn\.(completed|failed)"/.exec(text)?.[1] ?? "lost";
}

function turns(cases: Readonly<Record<string, HostileCase>>): string[] {
  return Object.values(cases).map(({ schema, reply }) => {
    const { content } = new Play({ replies: [[{ text: JSON.stringify(reply) }]] });
    return JSON.stringify({ content, output: { schema } });
  });
}

// On two busy cores a hundred of them take long.
describe("a hundred hostile requests", { timeout: 120_000 }, () => {
  /** Sends the cases. Returns how many turns had each outcome. */
  async function endsOf(cases: Readonly<Record<string, HostileCase>>) {
    const { served, INVALID_INPUT = 0, completed = 0, failed = 0, ...others } = await outcomes(turns(cases));
    expect([served, INVALID_INPUT + completed + failed, others]).toEqual([COUNT, COUNT, {}]);
    return { INVALID_INPUT, completed, failed };
  }

  test("INSCHEMA-1 INSCHEMA-2 EFFORT-1 with schemas are refused, or their turns end, and others are served", async () => {
    const { INVALID_INPUT, completed, failed } = await endsOf(HOSTILE_SCHEMAS);
    expect(Math.min(INVALID_INPUT, completed, failed)).toBeGreaterThan(0);
  });

  test("PATTERN-1 with patterns are refused, or their turns end, and others are served", async () => {
    const { INVALID_INPUT, failed } = await endsOf(HOSTILE_PATTERNS);
    expect(Math.min(INVALID_INPUT, failed)).toBeGreaterThan(0);
  });

  test("EFFORT-1 PATTERN-2 with schemas of tools are refused, or all calls are refused and the turn continues", async () => {
    const names = Array.from({ length: HOSTILE_TOOLS }, (_, n) => `t${n}`);
    const bodies = Object.values(HOSTILE_CALLS).map(({ schema: inputSchema, reply: input }) => {
      const calls = names.map((call) => ({ call, input }));
      const { content } = new Play({ replies: [calls, [{ text: "done" }]] });
      return JSON.stringify({
        content,
        tools: names.map((name) => ({ name, description: "", inputSchema })),
      });
    });
    const { served, INVALID_INPUT = 0, completed = 0, ...others } = await outcomes(bodies, bodies.length);
    expect([served, INVALID_INPUT + completed, others]).toEqual([bodies.length, bodies.length, {}]);
    expect(Math.min(INVALID_INPUT, completed)).toBeGreaterThan(0);
  });

  test("JSON-1 with shapes are refused, and others are served", async () => {
    const {
      served,
      TOO_LARGE = 0,
      INVALID_JSON = 0,
      ...others
    } = await outcomes(Object.values(HOSTILE_SHAPES));
    expect([served, TOO_LARGE + INVALID_JSON, others]).toEqual([COUNT, COUNT, {}]);
  });
});

describe("a hostile frame", () => {
  test.each(["/conversations/", "/agents/conversation/"])(
    "GUARD-3 JSON-1 is refused before parsing, and the connection continues: %s",
    async (door) => {
      const server = new TokenServer();
      const token = await sign({ roles: ["author"] });
      const id = await server.conversation(token);
      const client = await server.connect(token, `${door}${id}`);
      await client.frame("snapshot");
      const names = "a few thousand names that collide";
      client.sendText(HOSTILE_SHAPES[names]);
      client.sendText(`{"type": "rpc", "id": "1", "method": "sql", "args": ${HOSTILE_SHAPES[names]}}`);
      client.sendText("[".repeat(100_000));
      await client.frame("error", ({ data }) => data.code === "TOO_LARGE", 2);
      await client.frame("error", ({ data }) => data.code === "INVALID_JSON", 1);
      client.send({ type: "ping" });
      await client.frame("pong");
      client.close();
    },
  );
});
