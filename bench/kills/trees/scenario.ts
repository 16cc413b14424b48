/**
 * Trees of calls of agents on three levels, while the server is killed at random moments. A chief calls leads, leads call
 * hands, and the tools of hands act outside. Some users stop their tree.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type {
  ConversationView,
  JournalEntryView,
  TurnView,
} from "../../../src/protocol/conversation-schemas.ts";
import { mulberry32 } from "../../../src/shared/mulberry32.ts";
import type { Bundle } from "../../harness/bundle.ts";
import { OUTSIDE_SERVER } from "../outside-server.ts";
import { RestartedServer } from "../restarted-server.ts";
import { CHIEF } from "./agents.ts";
import { checkTrees } from "./check.ts";
import type { RoomRecord, TreeRecord, TreesHistory } from "./history.ts";

export interface TreesOptions {
  kills: number;
  /** Users, each with one tree at a time. */
  users: number;
  /** Seed of all choices. The timing depends on the machine. */
  seed: number;
  /** Time limit of the scenario, in milliseconds. */
  patienceMs: number;
  /**
   * Time limit for the usage of each call to reach its caller after the end of a tree, in milliseconds. Failed deliveries of an envelope
   * back off.
   */
  settleMs: number;
}

/** Calls of the chief, and of each lead. */
const WIDTH = 3;
/** Time between two kills, and duration of a tool, in milliseconds. */
const CALM_MS = { from: 200, to: 2_000 };
const RUN_MS = { from: 50, to: 450 };
/** Time until a user stops a tree, in milliseconds. */
const PATIENT_MS = { from: 100, to: 3_000 };
const RETRY_MS = 200;

/** Runs the scenario in its own directory. Returns its history, unless a tree does not end in time. */
export async function trees(
  bundle: Bundle,
  directory: string,
  { kills, users, seed, patienceMs, settleMs }: TreesOptions,
  progress: (done: number) => void = () => {},
): Promise<TreesHistory> {
  const random = mulberry32(seed);
  const history: TreesHistory = { kills: [], trees: [], hits: [] };
  const outside = createServer(OUTSIDE_SERVER, (request, response) => {
    const operationId = String(request.headers["idempotency-key"]);
    history.hits.push({ operationId, isOnce: request.url?.startsWith("/once") === true });
    setTimeout(() => response.end('"done"'), within(random, RUN_MS));
  });
  outside.listen(0, "127.0.0.1");
  await once(outside, "listening");
  const address = outside.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  const server = await RestartedServer.open(bundle, directory, url).catch((error: unknown) => {
    outside.close();
    throw error;
  });
  const signal = AbortSignal.timeout(patienceMs);
  let isRaging = true;

  /** Repeats a request until it has an answer. Resolves to `null` if the conversation does not exist. */
  async function find<Answer>(path: string, body?: object): Promise<Answer | null> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const response = await fetch(`${server.baseUrl}/api/conversations${path}`, {
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
          signal: AbortSignal.any([signal, AbortSignal.timeout(8_000)]),
        });
        const answer: Answer = await response.json();
        if (response.ok || response.status === 409) return answer;
        if (response.status === 404) return null;
      } catch {
        // The server is down or starting.
      }
      await pause(RETRY_MS, undefined, { signal });
    }
  }

  async function ask<Answer>(path: string, body?: object): Promise<Answer> {
    const answer = await find<Answer>(path, body);
    if (answer === null) throw new Error(`${path} was not found.`);
    return answer;
  }

  async function use(user: number): Promise<void> {
    const own = mulberry32(seed + user + 1);
    for (let n = 0; isRaging; n++) {
      const { id } = await ask<{ id: string }>("", { agentId: CHIEF });
      const body = { content: treeOf(url), idempotencyKey: `${user}-${n}` };
      const { turnId } = await ask<{ turnId: string }>(`/${id}/turns`, body);
      const stopped = own() < 0.3;
      if (stopped) {
        await pause(within(own, PATIENT_MS), undefined, { signal });
        await ask(`/${id}/turns/${turnId}/cancel`, {});
      }
      history.trees.push({ stopped, rooms: await atRest(id) });
    }
  }

  /** Returns the conversations of a tree when all are idle and the usage of calls has had time to arrive. */
  async function atRest(root: string): Promise<TreeRecord["rooms"]> {
    for (let over: number | undefined; ; ) {
      const rooms: RoomRecord[] = [];
      const open: { id: string; operationId?: string }[] = [{ id: root }];
      for (let next = open.shift(); next !== undefined; next = open.shift()) {
        const room = await roomOf(next);
        // A call that was stopped early has opened no conversation.
        if (room === null) continue;
        rooms.push(room);
        open.push(...room.calls.map(({ conversationId: id, operationId }) => ({ id, operationId })));
      }
      const isOver = ({ active, operationId, status }: RoomRecord) =>
        active === 0 && (operationId === undefined || status === "completed");
      if (rooms.every(isOver)) {
        over ??= Date.now();
        if (
          Date.now() - over > settleMs ||
          checkTrees({ kills: [], trees: [{ stopped: false, rooms }], hits: [] }).length === 0
        )
          return rooms;
      }
      await pause(RETRY_MS, undefined, { signal });
    }
  }

  async function roomOf({
    id,
    operationId,
  }: {
    id: string;
    operationId?: string;
  }): Promise<RoomRecord | null> {
    // After the end of a turn, only its amounts can still change.
    const first = await find<{ entries: JournalEntryView[] }>(`/${id}/journal?limit=200`);
    if (first === null) return null;
    const started = first.entries.flatMap(({ type, turnId }) =>
      type === "turn.started" && turnId ? [turnId] : [],
    );
    const turns = await Promise.all(started.map((turn) => ask<TurnView>(`/${id}/turns/${turn}`)));
    const { entries } = await ask<{ entries: JournalEntryView[] }>(`/${id}/journal?limit=200`);
    const view = await ask<ConversationView>(`/${id}`);
    const moves = turns.flatMap((turn) => turn.moves);
    const { inputTokens = 0, outputTokens = 0 } = view.usage ?? {};
    return {
      id,
      status: view.status,
      ...(operationId === undefined ? {} : { operationId }),
      active: turns.filter(({ status }) => status === "active").length,
      journal: entries,
      calls: moves.flatMap(({ toolCall }) =>
        toolCall?.agent?.conversationId !== undefined
          ? [{ operationId: toolCall.operationId, conversationId: toolCall.agent.conversationId }]
          : [],
      ),
      once: moves.flatMap(({ toolCall }) => (toolCall?.name === "once" ? [toolCall.operationId] : [])),
      succeeded: moves.flatMap(({ toolCall, toolResult }) =>
        toolCall !== undefined && toolResult?.success === true ? [toolCall.operationId] : [],
      ),
      spent: view.spent ?? { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 },
      counted: inputTokens + outputTokens,
    };
  }

  async function rage(): Promise<void> {
    for (let done = 0; done < kills; done++) {
      await pause(within(random, CALM_MS), undefined, { signal });
      history.kills.push(await server.kill());
      progress(done + 1);
    }
    isRaging = false;
  }

  try {
    await Promise.all([rage(), ...Array.from({ length: users }, (_, user) => use(user))]);
    return history;
  } catch (cause) {
    throw new Error(
      `The scenario did not end. Last output of the server:\n${server.output().slice(-5_000)}`,
      {
        cause,
      },
    );
  } finally {
    await server.close();
    outside.close();
    outside.closeAllConnections();
  }
}

/** Returns a message to the chief: commands of the offline model. The messages of its calls contain the commands of lower levels. */
function treeOf(url: string): string {
  const lines = (line: (index: number) => string) =>
    Array.from({ length: WIDTH }, (_, n) => line(n)).join("\n");
  const command = (tool: string, input: object) => `!tool ${tool} ${JSON.stringify(input)}`;
  const act = (n: number) =>
    n === 0 ? command("idempotent", { url: `${url}/again` }) : command("once", { url: `${url}/once` });
  return lines(() =>
    command("ask_lead", { message: lines((n) => command("ask_hand", { message: act(n) })) }),
  );
}

function within(random: () => number, { from, to }: { from: number; to: number }): number {
  return from + Math.floor(random() * (to - from + 1));
}
