/** Starts the server of Mastra as a process of its own. */
import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "../../harness/install.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));

export interface MastraServer {
  port: number;
  stop(): Promise<void>;
}

/** Installs Mastra if it is not there. `directory` holds the database. */
export async function serveMastra(directory: string, modelUrl: string): Promise<MastraServer> {
  await ensureInstalled(FOLDER);
  const args = [join(FOLDER, "server.ts"), modelUrl, join(directory, "mastra.db")];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, MASTRA_TELEMETRY_DISABLED: "1" },
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
    return { port: Number(port), stop };
  }
  throw new Error("Mastra's server exited before it was ready. See its output above.");
}
