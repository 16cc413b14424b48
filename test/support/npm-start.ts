/** Runs `npm start` for tests that need the whole server. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { processTree, waitUntilGone } from "./processes.ts";

const ROOT = join(import.meta.dirname, "../..");

export interface RunningStart {
  /** `http://127.0.0.1:PORT`. */
  url: string;
  /** npm's process. */
  npm: ChildProcess;
  /** Returns all output so far. */
  output(): string;
  /** Interrupts it as Ctrl-C does, and waits until all of its processes have exited. */
  stop(): Promise<void>;
}

/** Starts the server, on a free port by default, and waits until it is ready. */
export async function npmStart(
  persist: string,
  environment: Record<string, string> = {},
  port = 0,
): Promise<RunningStart> {
  const { npm, output } = spawnStart(["--port", String(port), "--persist", persist], environment);
  const url = await new Promise<string>((resolve, reject) => {
    npm.stdout?.on("data", () => {
      const [, url] = /^Dramatis is ready at (\S+)$/m.exec(output()) ?? [];
      if (url !== undefined) resolve(url);
    });
    npm.once("exit", () => reject(new Error(`npm start has ended:\n${output()}`)));
  });
  const stop = async () => {
    const pids = processTree(npm.pid ?? 0).map(({ pid }) => pid);
    // A terminal interrupts every process of the foreground group.
    process.kill(-(npm.pid ?? 0), "SIGINT");
    await waitUntilGone(pids);
  };
  return { url, npm, output, stop };
}

/** Runs `npm start` with these arguments to its end. */
export async function failedStart(
  args: string[],
  environment: Record<string, string> = {},
): Promise<{ code: number | null; output: string }> {
  const { npm, output } = spawnStart(args, environment);
  const [code] = (await once(npm, "close")) as [number | null];
  return { code, output: output() };
}

function spawnStart(args: string[], environment: Record<string, string>) {
  const npm = spawn("npm", ["start", "--", ...args], {
    cwd: ROOT,
    env: { ...process.env, ...environment },
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const chunks: string[] = [];
  for (const stream of [npm.stdout, npm.stderr]) stream.on("data", (chunk) => chunks.push(String(chunk)));
  return { npm, output: () => chunks.join("") };
}
