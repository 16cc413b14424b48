/**
 * Runs of workflows that fan out, while the server is killed within each fan-out. A desk outside counts the requests of each operation. No
 * client calls a run between its start and the last kill, so only alarms resume it.
 */
import { EventEmitter, once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { RunEntryView, RunView } from "../../../src/protocol/run-schemas.ts";
import { mulberry32 } from "../../../src/shared/mulberry32.ts";
import type { Bundle } from "../../harness/bundle.ts";
import { OUTSIDE_SERVER } from "../outside-server.ts";
import { RestartedServer } from "../restarted-server.ts";
import type { EndedRun, RunsHistory } from "./history.ts";
import { ERRANDS } from "./names.ts";

export interface RunsOptions {
  /** Number of runs. Each starts when the run before it has ended. */
  runs: number;
  /** Kills within the fan-out of each run. */
  kills: number;
  /** Branches of each run. Most are tasks, one in 20 is a sub-workflow, and one in 40 asks an agent. */
  branches: number;
  /** Seed of all choices. The timing depends on the machine. */
  seed: number;
  /** Time limit of the scenario, in milliseconds. */
  patienceMs: number;
}

/** Response time of the desk, in milliseconds. */
const DESK_MS = { from: 20, to: 600 };
/** Answers of the desk between a restart and the next kill. The kill then comes while a `once` operation is at the desk. */
const ANSWERS = { from: 10, to: 60 };
/** Maximum wait for such an operation, in milliseconds. Near the end, only waits for lost results may be left. */
const QUIET_MS = 6_000;
const RETRY_MS = 200;
const PAGE = 200;

/** Runs the scenario in its own directory. Returns its history, unless a run does not end in time. */
export async function runs(
  bundle: Bundle,
  directory: string,
  { runs: count, kills, branches, seed, patienceMs }: RunsOptions,
  progress: (done: number) => void = () => {},
): Promise<RunsHistory> {
  const random = mulberry32(seed);
  const history: RunsHistory = { kills: [], hits: [], runs: [] };
  const events = new EventEmitter();
  const desk = createServer(OUTSIDE_SERVER, (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://desk");
    const isOnce = pathname !== "/look";
    history.hits.push({
      isOnce,
      call: searchParams.get("call") ?? "",
      operationId: String(request.headers["idempotency-key"]),
      runId: searchParams.get("run") ?? "",
    });
    const answer = () => {
      response.end('"done"');
      events.emit("answer");
    };
    setTimeout(answer, within(random, DESK_MS));
    if (isOnce) events.emit("once");
  });
  desk.listen(0, "127.0.0.1");
  await once(desk, "listening");
  const address = desk.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  const server = await RestartedServer.open(bundle, directory, url).catch((error: unknown) => {
    desk.close();
    throw error;
  });
  const signal = AbortSignal.timeout(patienceMs);

  /** Repeats a request until it has an answer. */
  async function ask<Answer>(path: string, body?: object): Promise<Answer> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const response = await fetch(`${server.baseUrl}/api/runs${path}`, {
          ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
          signal: AbortSignal.any([signal, AbortSignal.timeout(15_000)]),
        });
        const answer: Answer = await response.json();
        if (response.ok) return answer;
        if (response.status < 500 && response.status !== 429)
          throw new Refused(`${path} is refused: ${JSON.stringify(answer)}`);
      } catch (error) {
        // Otherwise the server is down or starting.
        if (error instanceof Refused) throw error;
      }
      await pause(RETRY_MS, undefined, { signal });
    }
  }

  /** Resolves when a `once` operation reaches the desk, after this number of answers. */
  async function aim(answers: number, ended: AbortSignal): Promise<void> {
    for (let left = answers; left > 0; left--) await once(events, "answer", { signal: ended });
    await once(events, "once", { signal: ended });
  }

  async function killWithin(): Promise<void> {
    for (let done = 0; done < kills; done++) {
      const ended = new AbortController();
      const aimed = aim(within(random, ANSWERS), ended.signal);
      const quiet = pause(QUIET_MS, undefined, { signal: ended.signal });
      await Promise.race([aimed, quiet]).finally(() => ended.abort());
      for (const unused of [aimed, quiet]) unused.catch(() => undefined);
      history.kills.push(await server.kill());
      progress(history.kills.length);
    }
  }

  /** Waits for the end of a run and returns it. `names` is the prefix of the errands of the runs below it. */
  async function endOf(id: string, names?: string): Promise<EndedRun> {
    for (;;) {
      const view = await ask<RunView>(`/${id}`);
      if (view.status !== "running" && view.status !== "waiting") {
        const own = history.hits.filter(({ call }) => names !== undefined && call.startsWith(names));
        const ids = new Set(own.flatMap(({ runId }) => (runId === "" ? [] : [runId])));
        const below = await Promise.all([...ids].map((one) => endOf(one)));
        return { view, journal: await journalOf(id), below };
      }
      await pause(RETRY_MS, undefined, { signal });
    }
  }

  async function journalOf(id: string): Promise<RunEntryView[]> {
    const entries: RunEntryView[] = [];
    for (let cursor: string | undefined = "0"; cursor !== undefined; ) {
      const page: { entries: RunEntryView[]; nextCursor?: string } = await ask(
        `/${id}/journal?limit=${PAGE}&cursor=${cursor}`,
      );
      entries.push(...page.entries);
      cursor = page.nextCursor;
    }
    return entries;
  }

  try {
    // One after another: a run may be interrupted ten times while no node ends.
    for (let n = 0; n < count; n++) {
      const input = errandsOf(url, `r${n}`, branches);
      const request = { workflow: `kills/${ERRANDS}`, input, idempotencyKey: `${seed}-${n}` };
      const { id } = await ask<RunView>("", request);
      await killWithin();
      history.runs.push(await endOf(id, `r${n}:p`));
    }
    return history;
  } catch (cause) {
    const last = server.output().slice(-5_000);
    throw new Error(`The scenario did not end. Last output of the server:\n${last}`, { cause });
  } finally {
    await server.close();
    desk.close();
    desk.closeAllConnections();
  }
}

/** A refusal that a retry cannot change. */
class Refused extends Error {}

/** Returns the input of a run, with a unique name for each errand. */
function errandsOf(url: string, run: string, branches: number) {
  const pairs = Math.floor(branches / 20);
  const messages = Math.floor(branches / 40);
  const names = (kind: string, count: number) =>
    Array.from({ length: count }, (_, n) => `${run}:${kind}${n}`);
  return {
    url,
    calls: names("c", branches - pairs - messages),
    pairs: names("p", pairs).map((call) => ({ call, calls: [`${call}a`, `${call}b`] })),
    messages: names("m", messages).map(
      (call) => `!tool once ${JSON.stringify({ url: `${url}/once?call=${call}` })}`,
    ),
  };
}

function within(random: () => number, { from, to }: { from: number; to: number }): number {
  return from + Math.floor(random() * (to - from + 1));
}
