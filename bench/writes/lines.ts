/**
 * Turns with many or large tool results in Node's SQLite, with the bytes that their commits write. Deterministic: the clock
 * stands still, and the model and the tools answer at once.
 */
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { SqlRow, SqlValue } from "../../src/ports/sql-database.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import { utf8Length } from "../../src/shared/utf8.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";

/** A turn: `rounds` replies that call a tool `calls` times each, and an answer. */
export interface Line {
  name: string;
  effect: "once" | "pure";
  rounds: number;
  calls: number;
  /** Bytes of each result as JSON. */
  size: number;
}

export const LINES: readonly Line[] = [
  { name: "30x1 once", effect: "once", rounds: 30, calls: 1, size: 20_000 },
  { name: "30x1 pure", effect: "pure", rounds: 30, calls: 1, size: 20_000 },
  { name: "95x1 once", effect: "once", rounds: 95, calls: 1, size: 20_000 },
  { name: "95x1 pure", effect: "pure", rounds: 95, calls: 1, size: 20_000 },
  { name: "30x8 once", effect: "once", rounds: 30, calls: 8, size: 20_000 },
  { name: "30x8 pure", effect: "pure", rounds: 30, calls: 8, size: 20_000 },
  { name: "64 parallel", effect: "once", rounds: 1, calls: 64, size: 120_000 },
  { name: "30x8 small", effect: "once", rounds: 30, calls: 8, size: 3_900 },
  { name: "95x1 small", effect: "once", rounds: 95, calls: 1, size: 3_900 },
];

/** Bytes that each commit may write in addition to content. */
const ALLOWANCE = 8 * 1024;

export interface Written {
  /** Bytes of all values, keys included, that are bound to writing statements. */
  bytes: number;
  commits: number;
  /** Bytes of the results as JSON. */
  content: number;
}

/** Returns the number of times that the content was written, without 8 KiB for each commit. */
export function ratioOf({ bytes, commits, content }: Written): number {
  return (bytes - ALLOWANCE * commits) / content;
}

/** Counts the bytes bound to writing statements, and the commits of the conversation. */
class MeteredDatabase extends NodeSqlDatabase {
  bytes = 0;
  commits = 0;

  override run(statement: string, ...values: SqlValue[]): void {
    this.#count(statement, values);
    super.run(statement, ...values);
  }

  override all<Row extends SqlRow>(statement: string, ...values: SqlValue[]): Row[] {
    this.#count(statement, values);
    return super.all(statement, ...values);
  }

  #count(statement: string, values: readonly SqlValue[]): void {
    if (statement.startsWith("SELECT")) return;
    if (statement.startsWith("INSERT INTO journal")) this.commits += 1;
    for (const value of values) this.bytes += bytesOf(value);
  }
}

function bytesOf(value: SqlValue): number {
  if (value === null) return 0;
  if (typeof value === "string") return utf8Length(value);
  return typeof value === "number" ? 8 : value.byteLength;
}

/** Runs the turn to its end in a new conversation. Throws if it does not complete. */
export async function runLine(line: Line): Promise<Written> {
  const database = new MeteredDatabase();
  try {
    return await runIn(database, line);
  } finally {
    database.close();
  }
}

async function runIn(database: MeteredDatabase, { effect, rounds, calls, size }: Line): Promise<Written> {
  const keyValue = new NodeKeyValue(database);
  const clock = new VirtualClock();
  const result = "x".repeat(size - 2);
  const tool = defineTool({
    name: "look_up",
    description: "Looks a text up.",
    input: z.object({ n: z.number() }),
    effect,
    execute: () => result,
  });
  const code = new DeployedCode([defineLibrary("bench", { tools: [tool] })]);
  let end: (type: string) => void = () => undefined;
  const ended = new Promise<string>((resolve) => {
    end = resolve;
  });
  const runtime = new ConversationRuntime({
    database,
    keyValue,
    clock,
    ids: seededIds(1, clock),
    gateway: scriptedGateway(rounds, calls),
    adapters: adapterFor,
    executor: localExecutor(code, clock),
    gate: allowAll,
    armWakeup: async () => undefined,
    ...noMail,
    publish: (frames) => {
      for (const { type } of frames) if (type === "turn.completed" || type === "turn.failed") end(type);
    },
  });
  runtime.create({
    id: "conv_bench",
    tenant: "bench",
    title: null,
    projectId: "default",
    participants: [{ type: "user", id: "ada" }],
    agents: [{ id: "assistant", chain: await chainOf(code) }],
    createdAt: clock.now(),
  });
  [database.bytes, database.commits] = [0, 0];
  await runtime.accept({
    type: "conversation.user.message",
    id: "key",
    caller: { type: "user", userId: "ada" },
    data: { content: "Go." },
  });
  const type = await ended;
  const operations = runtime.store.turn(1)?.operations ?? [];
  const isWhole =
    operations.length === rounds * calls && operations.every((one) => one.result?.result === result);
  if (type !== "turn.completed" || !isWhole) throw new Error("The turn has lost a result.");
  return { bytes: database.bytes, commits: database.commits, content: rounds * calls * size };
}

/** A model that calls the tool in each of `rounds` replies, and then answers. */
function scriptedGateway(rounds: number, calls: number): ModelGateway {
  let replies = 0;
  return {
    async *stream() {
      yield { type: "response", response: {} };
      if (replies++ === rounds) {
        yield { type: "text", text: "Done." };
        yield { type: "finish", reason: "stop" };
        return;
      }
      for (let index = 0; index < calls; index++) {
        const id = `call_${replies}_${index}`;
        yield {
          type: "tool-call",
          index,
          id,
          name: "look_up",
          arguments: JSON.stringify({ n: replies * calls + index }),
        };
      }
      yield { type: "finish", reason: "tool_calls" };
    },
  };
}

function chainOf(code: DeployedCode): Promise<VersionChain> {
  const persona = {
    identity: { systemPrompt: "Look things up." },
    tools: { toolIds: ["bench/look_up"], constraints: { maxMovesPerTurn: 100 } },
  };
  const profile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" } as const;
  return resolveChain(new Registry(code), persona, profile);
}
