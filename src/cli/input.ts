/** Input of commands: text and files, or standard input for `-`, and the bytes of responses. */
import { openAsBlob, readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { CommandFailure, wrongUsage } from "./failure.ts";

function checkPiped(): void {
  if (process.stdin.isTTY)
    throw wrongUsage("Standard input is a terminal. Give a text or a file, or pipe it in.");
}

function notReadable(path: string, cause: unknown): CommandFailure {
  return new CommandFailure(`${path} cannot be read (${cause instanceof Error ? cause.message : cause}).`);
}

/** Reads a text file, or standard input for `-`. */
export async function readInput(path: string): Promise<string> {
  if (path === "-") {
    checkPiped();
    return text(process.stdin);
  }
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw notReadable(path, cause);
  }
}

/** Opens a file, or reads standard input for `-`. */
export async function openInput(path: string): Promise<Blob> {
  if (path === "-") return new Blob([await readInput(path)]);
  try {
    return await openAsBlob(path);
  } catch (cause) {
    throw notReadable(path, cause);
  }
}

/** Yields the bytes of a stream. Leaving the loop releases the connection. */
export async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
