#!/usr/bin/env node
import { once } from "node:events";
import { stripVTControlCharacters } from "node:util";
import { CommanderError } from "commander";
import { DramatisClientError } from "../client/errors.ts";
import { createClient } from "../client/http.ts";
/** `dramatis`: the command line of a local or a deployed server. */
import { errorText } from "../shared/errors.ts";
import type { Cli } from "./command.ts";
import { CommandFailure, FAILED, INTERRUPTED, notDramatis, requestFailure, WRONG_USAGE } from "./failure.ts";
import { createProgram } from "./program.ts";
import { requester } from "./request.ts";
import { DEFAULT_URL, expiryOf, serverUrl, tokenOf, withoutToken } from "./settings.ts";
import { clean, DEFAULT_WIDTH, jsonText, shown } from "./text.ts";

/** Time for a command to end after Ctrl-C, in milliseconds. */
const GRACE_MS = 500;

const { stdout, stderr } = process;
const stop = new AbortController();
process.once("SIGINT", () => {
  stop.abort();
  setTimeout(() => process.exit(INTERRUPTED), GRACE_MS).unref();
});
// The reader of a pipe may end first, as `head` does.
for (const stream of [stdout, stderr]) stream.on("error", () => process.exit(0));

const secret = process.env.DRAMATIS_TOKEN?.trim() || undefined;
const isPlain = !stdout.isTTY || Boolean(process.env.NO_COLOR);
const writeError = (text: string) => void stderr.write(withoutToken(text, secret));
let url = DEFAULT_URL;

async function write(output: string | Uint8Array): Promise<void> {
  // A terminal would execute control characters of a file.
  const text = typeof output !== "string" && stdout.isTTY ? clean(new TextDecoder().decode(output)) : output;
  const safe = typeof text === "string" ? withoutToken(text, secret) : text;
  const ready = stdout.write(isPlain && typeof safe === "string" ? stripVTControlCharacters(safe) : safe);
  if (!ready) await once(stdout, "drain", { signal: stop.signal });
}

function open(options: { url?: string; json: boolean }): Cli {
  url = serverUrl(options.url, process.env.DRAMATIS_URL);
  const token = tokenOf(secret);
  return {
    client: createClient({ baseUrl: url, ...(token !== undefined && { token }) }),
    url,
    hasToken: token !== undefined,
    tokenExpires: token === undefined ? undefined : expiryOf(token),
    json: options.json,
    // A terminal without a size reports 0. A pipe or a file gets whole lines.
    width: stdout.isTTY ? stdout.columns || DEFAULT_WIDTH : Number.POSITIVE_INFINITY,
    signal: stop.signal,
    request: requester(url, token, stop.signal),
    write,
    note: (line) => writeError(`${clean(line)}\n`),
  };
}

function lineOf(error: unknown): string {
  if (error instanceof DramatisClientError) return requestFailure(error, url);
  // JSON of another server lacks the members that a command reads.
  if (error instanceof TypeError) return notDramatis(url, error.message);
  return errorText(error);
}

/** Returns the exit code of an error, after its line is written. */
function failed(error: unknown): number {
  // Commander has written its own lines.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
  if (stop.signal.aborted) return INTERRUPTED;
  writeError(`${clean(lineOf(error))}\n`);
  return error instanceof CommandFailure ? error.exitCode : FAILED;
}

const program = createProgram({
  write: (text) => void stdout.write(text),
  writeError,
  open,
  async done(cli, answer) {
    if (answer === undefined) return;
    await write(`${cli.json ? jsonText(answer.value, 2) : shown(answer.text)}\n`);
    if (answer.failed) process.exitCode = FAILED;
  },
});
try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = failed(error);
}
// An answer that the command no longer needs would keep the process for seconds.
for (const stream of [stdout, stderr]) await new Promise((resolve) => stream.write("", resolve));
process.exit();
