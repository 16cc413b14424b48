/** `dramatis export` and `dramatis import`: a conversation or an agent as a file of lines of JSON. */
import { createWriteStream } from "node:fs";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { kindOf } from "./acts.ts";
import type { Answer, Cli, Command, Options } from "./command.ts";
import { CommandFailure, wrongUsage } from "./failure.ts";
import { chunksOf, openInput } from "./input.ts";

/** Bytes at the beginning of a file that include its first line. */
const HEADER_BYTES = 4_096;

async function exportFile(cli: Cli, [id = ""]: (string | undefined)[], { output }: Options) {
  const { client, signal, write } = cli;
  const kind = kindOf(id);
  if (kind === "run") throw wrongUsage("A run has no export. Give the id of a conversation or an agent.");
  const source = kind === "agent" ? client.agents : client.conversations;
  const lines = await source.export(id, { signal });
  if (output === undefined) {
    for await (const chunk of chunksOf(lines)) await write(chunk);
    return undefined;
  }
  let folder: string | undefined;
  try {
    // Nobody else can write to the new folder, so no link in it leads elsewhere.
    folder = await mkdtemp(join(dirname(output), ".dramatis-export-"));
    const partial = join(folder, "partial");
    await pipeline(chunksOf(lines), createWriteStream(partial, { mode: 0o600 }), { signal });
    await rename(partial, output);
  } catch (error) {
    if (signal.aborted || !(error instanceof Error && "path" in error)) throw error;
    throw new CommandFailure(`${output} cannot be written (${error.message}).`);
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
  return { value: { id, file: output }, text: `Exported ${id} to ${output}.` };
}

function kindInHeader(line: string): "conversation" | "agent" | undefined {
  try {
    const kind: unknown = JSON.parse(line)?.dramatis;
    return kind === "conversation" || kind === "agent" ? kind : undefined;
  } catch {
    return undefined;
  }
}

async function importFile(
  { client, signal }: Cli,
  [path = ""]: (string | undefined)[],
  { id }: Options,
): Promise<Answer> {
  const file = await openInput(path);
  const [first = ""] = (await file.slice(0, HEADER_BYTES).text()).split("\n");
  const kind = kindInHeader(first);
  if (kind === undefined)
    throw new CommandFailure(
      `${path} is not an export of a conversation or an agent: its first line is no header.`,
    );
  const target = kind === "agent" ? client.agents : client.conversations;
  const value = await target.import(file, { signal, ...(id !== undefined && { id }) });
  return { value, text: value.id };
}

export const FILE_COMMANDS: readonly Command[] = [
  {
    name: "export",
    about: "writes a conversation or an agent as lines of JSON",
    args: { "<id>": "id of a conversation or an agent" },
    options: { "--output <file>": "file to write; standard output by default" },
    run: exportFile,
  },
  {
    name: "import",
    about: "creates a conversation or an agent from a file of export, and prints its id",
    args: { "<file>": "the file, or - for standard input" },
    options: { "--id <id>": "id of the new conversation or agent" },
    run: importFile,
  },
];
