/** Serves Cloudflare Workflows on the local workerd of `wrangler dev`, with databases on disk. */
import { join } from "node:path";
import { unstable_startWorker as startWorker } from "wrangler";
import { BENCH_DIR } from "../../harness/paths.ts";

export interface WorkflowsServer {
  port: number;
  stop(): Promise<void>;
}

/** wrangler stops its workerd when the runner exits. */
export async function serveWorkflows(directory: string): Promise<WorkflowsServer> {
  const worker = await startWorker({
    config: join(BENCH_DIR, "fanout/workflows/wrangler.jsonc"),
    dev: {
      persist: directory,
      server: { hostname: "127.0.0.1", port: 0 },
      inspector: false,
      logLevel: "error",
      watch: false,
    },
  });
  const { port } = await worker.url;
  return { port: Number(port), stop: () => worker.dispose() };
}
