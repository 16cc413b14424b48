/**
 * The local server as a child process: wrangler, its two workerds and what they need, under a keeper that ends them all
 * together (`keeper.ts`).
 */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "./failure.ts";
import { PASSED_FILE, passVariables, removePassed } from "./variables.ts";

const ROOT = join(import.meta.dirname, "..");
const HOST = "127.0.0.1";
/** A runtime that refuses this long, in milliseconds, is not configured as it should be. */
const REFUSAL_PATIENCE_MS = 5_000;
/** A port may still be held by a runtime that is just ending. */
const PORT_PATIENCE_MS = 3_000;
const READY_PATIENCE_MS = 120_000;
const REQUEST_PATIENCE_MS = 10_000;
/** wrangler starts a process that crashed again in less than a second. */
const CRASH_PATIENCE_MS = 5_000;
const STOP_PATIENCE_MS = 6_000;

export interface ServerOptions {
  /** 0 chooses a free one. */
  port: number;
  /** Absolute path of the folder that holds all state. */
  persist: string;
  /** Absolute path of the Worker's configuration; the runtime's own when absent. */
  config?: string;
  /** What the Worker and wrangler print, without wrangler's small talk. */
  onLine(line: string, stream: "stdout" | "stderr"): void;
}

export interface Server {
  url: string;
  /** Resolves when the runtime answers that it is healthy; rejects with a `Failure` if that takes too long. */
  ready: Promise<void>;
  /** Resolves with the reason when the server has ended. */
  ended: Promise<string>;
  /** Ends every process of the server; resolves when they are gone. */
  stop(): Promise<void>;
}

/** Starts the server. Throws a `Failure` if the port is taken or state cannot be kept in the folder. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const port = await freePort(options.port);
  makeFolder(options.persist);
  const passed = passVariables(ROOT, process.env);
  const keeper = spawnKeeper(port, options, passed);
  let causeOfDeath = "its processes were killed";
  const ended = new Promise<string>((resolve) => {
    keeper.once("message", (reason) => resolve(String(reason)));
    keeper.once("error", (error) => resolve(error.message));
    keeper.once("exit", () => {
      // Whatever ended the keeper, its group ends with it.
      killGroup(keeper);
      removePassed(passed);
      resolve(causeOfDeath);
    });
  });
  const url = `http://${HOST}:${port}`;
  // wrangler starts a process that crashed again, but after a crash of its proxy it never answers.
  const checkRecovery = () => {
    waitUntilHealthy(url, ended, CRASH_PATIENCE_MS).catch(() => {
      if (!isRunning(keeper)) return;
      causeOfDeath = "it does not answer since one of its processes crashed";
      killGroup(keeper);
    });
  };
  const talk = readTalk(keeper, options.onLine, checkRecovery);
  return {
    url,
    ready: waitUntilHealthy(url, ended, READY_PATIENCE_MS).then(talk.workerSpeaks),
    ended,
    stop: async () => {
      if (keeper.connected) keeper.disconnect();
      const patience = new AbortController();
      await Promise.race([
        exited(keeper),
        delay(STOP_PATIENCE_MS, undefined, patience).then(() => killGroup(keeper)),
      ]);
      patience.abort();
    },
  };
}

function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true });
    accessSync(path, constants.W_OK);
  } catch (cause) {
    throw new Failure(`State cannot be kept in ${path}: ${cause}; choose another --persist.`);
  }
}

function spawnKeeper(
  port: number,
  { persist, config = join(ROOT, "wrangler.jsonc") }: ServerOptions,
  passed: string | undefined,
): ChildProcess {
  const wrangler = [
    join(ROOT, "node_modules/wrangler/bin/wrangler.js"),
    ...["dev", "--config", config, "--ip", HOST, "--port", String(port)],
    ...["--persist-to", persist, "--var", "DRAMATIS_LOCAL:1", "--show-interactive-dev-session=false"],
    ...(passed === undefined ? [] : ["--env-file", passed]),
  ];
  return spawn(process.execPath, [join(ROOT, "scripts/keeper.ts"), persist, ...wrangler], {
    cwd: ROOT,
    // A group of its own, so that the whole of it can be ended at once.
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: {
      ...process.env,
      ...(passed === undefined ? {} : { [PASSED_FILE]: passed }),
      CLOUDFLARE_CF_FETCH_ENABLED: "false",
      WRANGLER_HIDE_BANNER: "true",
      WRANGLER_REGISTRY_PATH: join(persist, "registry"),
      WRANGLER_SEND_ERROR_REPORTS: "false",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_WRITE_LOGS: "false",
      // The explorer would show every actor's data to whoever asks; observability costs a millisecond per call.
      X_LOCAL_EXPLORER: "false",
      X_LOCAL_OBSERVABILITY: "false",
    },
  });
}

/** Passes lines on. Until the Worker runs, stdout has only wrangler's account of what it does. */
function readTalk(
  keeper: ChildProcess,
  onLine: ServerOptions["onLine"],
  onCrash: () => void,
): { workerSpeaks(): void } {
  let started = false;
  for (const stream of ["stdout", "stderr"] as const) {
    const input = keeper[stream];
    if (input === null) continue;
    createInterface({ input }).on("line", (line) => {
      if (/^\[wrangler:\w+\].* crashed unexpectedly/.test(line)) onCrash();
      const smallTalk = /^(?:\[wrangler:info\]|⎔ )/.test(line);
      if (stream === "stderr" || line.startsWith("[wrangler:error]") || (started && !smallTalk)) {
        onLine(line, stream);
      }
    });
  }
  return {
    workerSpeaks: () => {
      started = true;
    },
  };
}

async function waitUntilHealthy(url: string, ended: Promise<string>, patienceMs: number): Promise<void> {
  let gone: string | undefined;
  void ended.then((reason) => {
    gone = reason;
  });
  const deadline = Date.now() + patienceMs;
  let answer = "it does not listen";
  let refusedSince = Number.POSITIVE_INFINITY;
  while (gone === undefined) {
    const isRefused = Date.now() - refusedSince > REFUSAL_PATIENCE_MS;
    if (isRefused || Date.now() > deadline) throw new Failure(`Dramatis did not get ready: ${answer}.`);
    try {
      const signal = AbortSignal.timeout(Math.min(patienceMs, REQUEST_PATIENCE_MS));
      const response = await fetch(`${url}/health`, { signal });
      if (response.ok) return;
      answer = `GET /health answers ${response.status}: ${await response.text()}`;
      refusedSince = response.status === 503 ? Math.min(refusedSince, Date.now()) : Number.POSITIVE_INFINITY;
    } catch (error) {
      answer = error instanceof Error && error.name === "TimeoutError" ? "it does not answer" : answer;
    }
    await delay(100);
  }
  throw new Failure(`Dramatis has ended: ${gone}.`);
}

async function freePort(port: number): Promise<number> {
  const deadline = Date.now() + PORT_PATIENCE_MS;
  for (;;) {
    const found = await tryPort(port);
    if (found !== null) return found;
    if (Date.now() > deadline) {
      throw new Failure(
        `Port ${port} is taken. End what listens there, or choose another: npm start -- --port N (0 is any free one)`,
      );
    }
    await delay(100);
  }
}

function tryPort(port: number): Promise<number | null> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EADDRINUSE") resolve(null);
      else reject(new Failure(`Port ${port} cannot be used: ${error.message}.`));
    });
    probe.listen(port, HOST, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : port));
    });
  });
}

function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

function exited(child: ChildProcess): Promise<void> {
  if (!isRunning(child)) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
  });
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // Nobody is left in the group.
  }
}
