/**
 * `npm start [-- --port N --persist DIR]`: the runtime on this machine, with the demo library and the console.
 *
 * START-1  When it ends, for whatever reason, nothing that it started is left running.
 * START-2  It says that it is ready when it is: `GET /health` has answered 200.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { buildConsole } from "./console.ts";
import { Failure } from "./failure.ts";
import { onNpmDeath } from "./npm-death.ts";
import { mayRestart } from "./restarts.ts";
import { type Server, startServer } from "./server.ts";

const USAGE = "Usage: npm start -- [--port N] [--persist DIR]";

function readOptions(): { port: number; persist: string } {
  const { values } = parseOptions();
  if (!/^\d{1,5}$/.test(values.port) || Number(values.port) > 65_535) {
    throw new Failure(`--port must be a number from 0 to 65535, not "${values.port}".\n${USAGE}`);
  }
  return { port: Number(values.port), persist: resolve(values.persist) };
}

function parseOptions() {
  try {
    return parseArgs({
      options: {
        port: { type: "string", default: "8787" },
        persist: { type: "string", default: ".dramatis" },
      },
    });
  } catch (cause) {
    throw new Failure(cause instanceof Error ? `${cause.message}\n${USAGE}` : USAGE);
  }
}

/** Resolves when somebody wants the runtime to end. */
function farewell(): Promise<undefined> {
  return new Promise((resolve) => {
    const leave = () => resolve(undefined);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, leave);
    onNpmDeath(() => {
      console.error("Dramatis ends: the npm that started it is gone.");
      leave();
    });
  });
}

/** Resolves when the server has ended by itself, with the reason, or when somebody wants it to end, with nothing. */
function run(server: Server, leaving: Promise<undefined>): Promise<string | undefined> {
  const ready = server.ready.then(() => console.log(`Dramatis is ready at ${server.url}`));
  return Promise.race([ready.then(() => server.ended), leaving]).finally(server.stop);
}

async function main(): Promise<void> {
  const options = readOptions();
  buildConsole();
  const leaving = farewell();
  const ends: number[] = [];
  let { port } = options;
  for (;;) {
    const onLine = (line: string, stream: "stdout" | "stderr") => process[stream].write(`${line}\n`);
    const server = await startServer({ ...options, port, onLine });
    const reason = await run(server, leaving);
    if (reason === undefined) return;
    ends.push(Date.now());
    if (!mayRestart(ends, Date.now())) {
      throw new Failure(`Dramatis has ended: ${reason}. It ended too often to be started again.`);
    }
    console.error(`Dramatis has ended: ${reason}. It is started again.`);
    port = Number(new URL(server.url).port);
  }
}

try {
  await main();
  process.exit(0);
} catch (error) {
  console.error(error instanceof Failure ? error.message : error);
  process.exit(1);
}
