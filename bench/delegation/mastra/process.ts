/** Starts the servers of Mastra, each as a separate process. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureInstalled } from "../../harness/install.ts";
import { type NodeServer, serveNode } from "../../harness/node-server.ts";

const FOLDER = dirname(fileURLToPath(import.meta.url));

/** Installs Mastra if it is missing, and starts a server of this folder. */
export async function serveMastra(script: string, args: readonly string[]): Promise<NodeServer> {
  await ensureInstalled(FOLDER);
  return serveNode(join(FOLDER, script), args, { MASTRA_TELEMETRY_DISABLED: "1" });
}
