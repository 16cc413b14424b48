/**
 * `npm start [-- --port N --persist DIR]`: a local server with the demo library and the console.
 *
 * START-1  All processes of a start end with it, for any reason of its end.
 * START-2  The ready message follows the first `GET /health` that returns 200.
 * START-12  An invalid `DRAMATIS_MODEL` is refused in one line, before the server starts.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { chosenModel } from "../src/model/provider-names.ts";
import { DramatisError } from "../src/shared/errors.ts";
import { writeDocsIndex } from "./build-docs-index.ts";
import { buildConsole, CONSOLE } from "./console.ts";
import { Failure } from "./failure.ts";
import { onNpmDeath } from "./npm-death.ts";
import { mayRestart } from "./restarts.ts";
import { type Server, startServer } from "./server.ts";
import { readVariables } from "./variables.ts";

const USAGE = `Usage: npm start -- [--port N] [--persist DIR]
  --port     port of 127.0.0.1, 8787 by default; 0 selects a free port
  --persist  folder of the state, .dramatis by default`;

function readOptions(): { port: number; persist: string } {
  // npm keeps options that are written before `--`, and passes their values on.
  if (process.env.npm_config_port !== undefined || process.env.npm_config_persist !== undefined)
    throw new Failure(`npm read the options as its own. Write them after "--".\n${USAGE}`);
  const { values } = parseOptions();
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
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
        help: { type: "boolean", default: false },
      },
    });
  } catch (cause) {
    throw new Failure(cause instanceof Error ? `${cause.message}\n${USAGE}` : USAGE);
  }
}

/** Throws a `Failure` for an invalid `DRAMATIS_MODEL` of the shell or of `.dev.vars` (START-12). */
function checkModel(): void {
  try {
    chosenModel({ ...readVariables(resolve(import.meta.dirname, "..")), ...process.env });
  } catch (error) {
    throw error instanceof DramatisError ? new Failure(error.message) : error;
  }
}

/** Resolves on a signal to stop. */
function stopRequested(): Promise<undefined> {
  return new Promise((resolve) => {
    const stop = () => resolve(undefined);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, stop);
    onNpmDeath(() => {
      console.error("Dramatis is stopping because npm has exited.");
      stop();
    });
  });
}

/** Resolves with the reason when the server exits, or with `undefined` on a signal to stop. */
function run(server: Server, stopping: Promise<undefined>): Promise<string | undefined> {
  const ready = server.ready.then(() => console.log(`Dramatis is ready at ${server.url}`));
  return Promise.race([ready.then(() => server.ended), stopping]).finally(server.stop);
}

async function main(): Promise<void> {
  const options = readOptions();
  checkModel();
  console.log(`Dramatis is starting with the state in ${options.persist}.`);
  writeDocsIndex();
  buildConsole();
  const stopping = stopRequested();
  const exits: number[] = [];
  let { port } = options;
  for (;;) {
    const onLine = (line: string, stream: "stdout" | "stderr") => process[stream].write(`${line}\n`);
    const server = await startServer({ ...options, port, assets: CONSOLE, onLine });
    const reason = await run(server, stopping);
    if (reason === undefined) return;
    exits.push(Date.now());
    if (!mayRestart(exits, Date.now())) {
      throw new Failure(`Dramatis stopped: ${reason}. It stopped too often and is not restarted.`);
    }
    console.error(`Dramatis stopped: ${reason}. Restarting.`);
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
