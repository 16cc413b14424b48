/**
 * `worker-server.ts --config FILE --port N --persist DIR [--env-file FILE]`: runs a Worker on wrangler's development server.
 *
 * START-4  No debugger listens: whoever may connect to wrangler's inspector reads the Worker's memory, and with it
 *          AUTH_SECRET. The command `wrangler dev` always opens one, so this script starts the server by wrangler's API.
 */
import { once } from "node:events";
import { parseArgs } from "node:util";
import { unstable_startWorker } from "wrangler";

const HOST = "127.0.0.1";

const { values } = parseArgs({
  options: {
    config: { type: "string", default: "wrangler.jsonc" },
    port: { type: "string", default: "0" },
    persist: { type: "string", default: ".dramatis" },
    "env-file": { type: "string" },
  },
});
const { config, port, persist, "env-file": envFile } = values;

const worker = await unstable_startWorker({
  config,
  ...(envFile === undefined ? {} : { envFiles: [envFile] }),
  bindings: { DRAMATIS_LOCAL: { type: "plain_text", value: "1" } },
  dev: { inspector: false, persist, server: { hostname: HOST, port: Number(port) } },
});
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => void worker.dispose().finally(() => process.exit(0)));
}
// Rejects with an error of the server, which then ends this process.
await once(worker.raw, "teardown");
