/**
 * `worker-server.ts --config FILE --port N --persist DIR [--env-file FILE] [--assets DIR]`: runs a Worker on wrangler's
 * development server.
 *
 * START-4  No debugger listens. A client of wrangler's inspector could read the Worker's memory, which contains
 *          AUTH_SECRET. The command `wrangler dev` always opens an inspector, so this script starts the server by wrangler's API.
 * START-6  The Worker has its own address as `DRAMATIS_URL`, unless its variables name another.
 * START-9  The Worker logs turns, failed tools and model errors, unless its variables set `DRAMATIS_LOG` to another value.
 * START-7  The server ends as soon as the process that receives its requests has ended. wrangler notices this only after seconds.
 * START-5  A build does not disturb a running server: it serves its own copy of the static files, in the state folder.
 * START-10  A changed file does not restart the Worker: that would interrupt its turns. Another start in the same folder writes such files.
 */
import { once } from "node:events";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { parseArgs, parseEnv } from "node:util";
import { unstable_DevEnv } from "wrangler";
import { reuseBundles } from "./bundle-cache.ts";
import { readVariables } from "./variables.ts";

const HOST = "127.0.0.1";
/** After a shorter connection comes a pause of this length, in milliseconds. */
const RECONNECT_MS = 100;

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

/** Returns variables of the Worker: its address and its log, unless its own variables have them (START-6, START-9). */
function ownVariables(): Record<string, { type: "plain_text"; value: string }> {
  const variables =
    envFile === undefined ? readVariables(dirname(config)) : parseEnv(readFileSync(envFile, "utf8"));
  const own = { DRAMATIS_LOG: "1", ...(port !== "0" && { DRAMATIS_URL: `http://${HOST}:${port}` }) };
  return Object.fromEntries(
    Object.entries(own).flatMap(([name, value]) =>
      variables[name] === undefined ? [[name, { type: "plain_text", value }]] : [],
    ),
  );
}

/** Keeps a connection to a port. Resolves when the port refuses connections (START-7). */
async function untilRefused(to: number): Promise<void> {
  for (;;) {
    const begin = Date.now();
    const socket = connect(to, HOST);
    try {
      await once(socket, "connect");
    } catch {
      return;
    }
    // A server may close a connection that is idle, or reset it when it ends.
    socket.on("error", () => {});
    socket.resume();
    await once(socket, "close");
    // After a long connection there is no pause: wrangler soon starts another process on the port, which does not recover.
    if (Date.now() - begin < RECONNECT_MS) await setTimeout(RECONNECT_MS);
  }
}

const devEnv = new unstable_DevEnv();
reuseBundles(devEnv.bundler);
const worker = await devEnv.startWorker({
  config,
  ...(envFile === undefined ? {} : { envFiles: [envFile] }),
  ...(assets === undefined ? {} : { assets: copyAssets(assets) }),
  bindings: { DRAMATIS_LOCAL: { type: "plain_text", value: "1" }, ...ownVariables() },
  // A start loads a bundle of 6 MB in less time than one of 10 MB. Stack traces keep their names and lines.
  build: { minify: true },
  dev: { inspector: false, watch: false, persist, server: { hostname: HOST, port: Number(port) } },
});
let isStopping = false;
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) {
  process.on(signal, () => {
    isStopping = true;
    void worker.dispose().finally(() => process.exit(0));
  });
}
const { port: served } = await worker.url;
void untilRefused(Number(served)).then(() => {
  if (!isStopping) process.exit(1);
});
// Rejects with an error of the server, which then ends this process.
await once(worker.raw, "teardown");
