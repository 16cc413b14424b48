/** Starts a compared system on Node, as a separate process. The process writes `port NUMBER` to its output when it listens. */
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface NodeServer {
  port: number;
  pid: number;
  stop(): Promise<void>;
}

/** Runs a script. When the runner exits for any reason, it kills the process by its id. */
export async function serveNode(
  script: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<NodeServer> {
  const child = spawn(process.execPath, [script, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  const kill = () => child.kill("SIGKILL");
  // Runs before other listeners, which may remove the directory.
  process.prependOnceListener("exit", kill);
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  for await (const line of createInterface({ input: child.stdout })) {
    const port = /^port (\d+)$/.exec(line)?.[1];
    if (port === undefined) continue;
    child.stdout.resume();
    const stop = async () => {
      kill();
      await ended;
      process.off("exit", kill);
    };
    if (child.pid === undefined) throw new Error("A process that listens has an id.");
    return { port: Number(port), pid: child.pid, stop };
  }
  throw new Error(`${script} exited before it was ready. See its output above.`);
}
