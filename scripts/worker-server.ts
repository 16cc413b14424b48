/**
 * `worker-server.ts --config FILE --port N --persist DIR [--env-file FILE] [--assets DIR]`: runs a Worker on wrangler's
 * development server.
 *
 * START-4  No debugger listens: whoever may connect to wrangler's inspector reads the Worker's memory, and with it
 *          AUTH_SECRET. The command `wrangler dev` always opens one, so this script starts the server by wrangler's API.
 * START-5  A build does not disturb a running server: it serves its own copy of the static files, in the state folder.
 */
import { once } from "node:events";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { unstable_startWorker } from "wrangler";

const HOST = "127.0.0.1";

const { values } = parseArgs({
  options: {
    config: { type: "string", default: "wrangler.jsonc" },
    port: { type: "string", default: "0" },
    persist: { type: "string", default: ".dramatis" },
    "env-file": { type: "string" },
    assets: { type: "string" },
  },
});
const { config, port, persist, "env-file": envFile, assets } = values;

/** Copies the static files. The state folder is locked, so no other server uses the copy. Returns its path. */
function copyAssets(from: string): string {
  const copy = join(persist, "assets");
  rmSync(copy, { recursive: true, force: true });
  cpSync(from, copy, { recursive: true });
  return copy;
}

const worker = await unstable_startWorker({
  config,
  ...(envFile === undefined ? {} : { envFiles: [envFile] }),
  ...(assets === undefined ? {} : { assets: copyAssets(assets) }),
  bindings: { DRAMATIS_LOCAL: { type: "plain_text", value: "1" } },
  dev: { inspector: false, persist, server: { hostname: HOST, port: Number(port) } },
});
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => void worker.dispose().finally(() => process.exit(0)));
}
// Rejects with an error of the server, which then ends this process.
await once(worker.raw, "teardown");
