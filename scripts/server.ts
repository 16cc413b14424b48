/**
 * The local server as a group of processes: wrangler and its children, under a keeper that ends them together (`keeper.ts`).
 *
 * START-8  The state folder is readable by its owner only (0700), also if it existed before.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, chmodSync, constants, mkdirSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { Failure } from "./failure.ts";
import { PASSED_FILE, passVariables, removePassed } from "./variables.ts";

const ROOT = join(import.meta.dirname, "..");
const HOST = "127.0.0.1";
/** A server that returns 503 for longer counts as misconfigured, in milliseconds. */
const UNHEALTHY_TIMEOUT_MS = 5_000;
/** A server that is stopping may still hold the port. */
const PORT_TIMEOUT_MS = 3_000;
const READY_TIMEOUT_MS = 120_000;
const REQUEST_TIMEOUT_MS = 10_000;
/** wrangler restarts a crashed process in about a second, and on a busy machine in several seconds. A complete start takes longer. */
const CRASH_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 6_000;

/** Only the owner has access. */
const OWNER_ONLY = 0o700;
const ALL_ACCESS = 0o777;
/** Marks folders such as `/tmp`. */
const STICKY = 0o1000;

export interface ServerOptions {
  /** 0 selects a free port. */
  port: number;
  /** Absolute path of the state folder. */
  persist: string;
  /** Absolute path of the Worker's configuration. The default is `wrangler.jsonc` of this repository. */
  config?: string;
  /** Absolute path of the static files. It overrides the path of the configuration. The server serves a copy (START-5). */
  assets?: string;
  /** Receives the output of the Worker and the errors of wrangler. */
  onLine(line: string, stream: "stdout" | "stderr"): void;
}

export interface Server {
  url: string;
  /** Resolves when the server is healthy. Rejects with a `Failure` if that takes too long. */
  ready: Promise<void>;
  /** Resolves with the reason when the server has exited. */
  ended: Promise<string>;
  /** Ends every process of the server. Resolves when they have exited. */
  stop(): Promise<void>;
}

/** Starts the server. Throws a `Failure` if the port is taken or the state folder cannot be written. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const port = await freePort(options.port);
  makeFolder(options.persist);
  const passed = passVariables(ROOT, process.env);
  const keeper = spawnKeeper(port, options, passed);
  let exitReason = "its processes were killed";
  const ended = new Promise<string>((resolve) => {
    keeper.once("message", (reason) => resolve(String(reason)));
    keeper.once("error", (error) => resolve(error.message));
    keeper.once("exit", () => {
      // The group ends with the keeper, also if the keeper crashed.
      killGroup(keeper);
      removePassed(passed);
      resolve(exitReason);
    });
  });
  const url = `http://${HOST}:${port}`;
  // wrangler restarts a crashed process, but does not recover from a crash of its proxy.
  const checkRecovery = () => {
    waitUntilHealthy(url, ended, CRASH_TIMEOUT_MS).catch(() => {
      if (!isRunning(keeper)) return;
      exitReason = "it no longer responds after one of its processes crashed";
      killGroup(keeper);
    });
  };
  const output = readOutput(keeper, options.onLine, checkRecovery);
  return {
    url,
    ready: waitUntilHealthy(url, ended, READY_TIMEOUT_MS).then(output.workerStarted),
    ended,
    stop: async () => {
      if (keeper.connected) keeper.disconnect();
      const timeout = new AbortController();
      await Promise.race([
        exited(keeper),
        delay(STOP_TIMEOUT_MS, undefined, timeout).then(() => killGroup(keeper)),
      ]);
      timeout.abort();
    },
  };
}

/** Creates the state folder. Only its owner can read it, also if the folder existed (START-8). */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: OWNER_ONLY });
    const { mode } = statSync(path);
    if ((mode & STICKY) !== 0) throw new Error("several users share this folder");
    if ((mode & ALL_ACCESS) !== OWNER_ONLY) chmodSync(path, OWNER_ONLY);
    accessSync(path, constants.W_OK);
  } catch (cause) {
    throw new Failure(`State cannot be stored in ${path}: ${cause}; choose another --persist.`);
  }
}

function spawnKeeper(
  port: number,
  { persist, config = join(ROOT, "wrangler.jsonc"), assets }: ServerOptions,
  passed: string | undefined,
): ChildProcess {
  const server = [
    ...[
      join(ROOT, "scripts/worker-server.ts"),
      "--config",
      config,
      "--port",
      String(port),
      "--persist",
      persist,
    ],
    ...(passed === undefined ? [] : ["--env-file", passed]),
    ...(assets === undefined ? [] : ["--assets", assets]),
  ];
  return spawn(process.execPath, [join(ROOT, "scripts/keeper.ts"), persist, ...server], {
    cwd: ROOT,
    // A process group can be killed as a whole.
    detached: true,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    env: {
      // Node keeps compiled code there: later starts load wrangler faster.
      NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/node"),
      ...process.env,
      ...(passed === undefined ? {} : { [PASSED_FILE]: passed }),
      CLOUDFLARE_CF_FETCH_ENABLED: "false",
      WRANGLER_HIDE_BANNER: "true",
      WRANGLER_REGISTRY_PATH: join(persist, "registry"),
      WRANGLER_SEND_ERROR_REPORTS: "false",
      WRANGLER_SEND_METRICS: "false",
      WRANGLER_WRITE_LOGS: "false",
      // The explorer would expose all actors' data. Observability costs a millisecond per call.
      X_LOCAL_EXPLORER: "false",
      X_LOCAL_OBSERVABILITY: "false",
    },
  });
}

/** Forwards lines of output. Until the Worker runs, stdout has only wrangler's progress messages. */
function readOutput(
  keeper: ChildProcess,
  onLine: ServerOptions["onLine"],
  onCrash: () => void,
): { workerStarted(): void } {
  let started = false;
  for (const stream of ["stdout", "stderr"] as const) {
    const input = keeper[stream];
    if (input === null) continue;
    createInterface({ input }).on("line", (line) => {
      if (/^\[wrangler:\w+\].* crashed unexpectedly/.test(line)) onCrash();
      const isProgress = /^(?:\[wrangler:info\]|⎔ )/.test(line);
      if (stream === "stderr" || line.startsWith("[wrangler:error]") || (started && !isProgress)) {
        onLine(line, stream);
      }
    });
  }
  return {
    workerStarted: () => {
      started = true;
    },
  };
}

async function waitUntilHealthy(url: string, ended: Promise<string>, timeoutMs: number): Promise<void> {
  let gone: string | undefined;
  void ended.then((reason) => {
    gone = reason;
  });
  const deadline = Date.now() + timeoutMs;
  let answer = "it is not listening";
  let unhealthySince = Number.POSITIVE_INFINITY;
  while (gone === undefined) {
    const isMisconfigured = Date.now() - unhealthySince > UNHEALTHY_TIMEOUT_MS;
    if (isMisconfigured || Date.now() > deadline)
      throw new Failure(
        `Dramatis did not become ready in ${Math.round(timeoutMs / 1_000)} s: ${answer}. If the Worker could not be built, the errors are above.`,
      );
    try {
      const signal = AbortSignal.timeout(Math.min(timeoutMs, REQUEST_TIMEOUT_MS));
      const response = await fetch(`${url}/health`, { signal });
      if (response.ok) return;
      answer = `GET /health returned ${response.status}: ${await response.text()}`;
      unhealthySince =
        response.status === 503 ? Math.min(unhealthySince, Date.now()) : Number.POSITIVE_INFINITY;
    } catch (error) {
      answer = error instanceof Error && error.name === "TimeoutError" ? "it does not respond" : answer;
    }
    await delay(100);
  }
  throw new Failure(`Dramatis stopped: ${gone}.`);
}

async function freePort(port: number): Promise<number> {
  const deadline = Date.now() + PORT_TIMEOUT_MS;
  for (;;) {
    const found = await tryPort(port);
    if (found !== null) return found;
    if (Date.now() > deadline) {
      throw new Failure(
        `Port ${port} is taken. Stop the process that listens on it, or choose another port: npm start -- --port N (0 selects a free port).`,
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
    // The group has no processes left.
  }
}
