/**
 * Prepares errors for the log, without contents.
 *
 * MEMLOG-1  Logs and states never contain the text of a memory, even if an embedder, a store or a task fails with an error that quotes it.
 *           For foreign errors, only name, codes and places are logged.
 */
import { DramatisError } from "./errors.ts";
import { cut } from "./text.ts";

/** Most characters of a logged error. */
const MAX_LENGTH = 4_000;
const NAME = /^[A-Z]\w{0,60}(?:Error|Exception)$/i;
const CODE = /^[A-Z][A-Z_]{1,40}$/;
const CODES = /\b(?:D1|SQLITE)_[A-Z_]{1,40}\b/g;
/** The text before the message in a stack. */
const HEAD = /^(?:[\w$]{1,60}(?: \[\w+\])?(?:: )?)?$/;
const FRAME = /^\s+at .*(?::\d+:\d+\)?|<anonymous>\)?|native\)?)$/;

/**
 * Returns an error for the log: the message of a platform error, or the place of a foreign error, because its message may quote data. Never
 * throws.
 */
export function placeOf(error: unknown): string {
  try {
    if (error instanceof DramatisError) return cut(`${error.code}: ${error.message}`, MAX_LENGTH);
    if (!(error instanceof Error)) return `A thrown ${typeof error}.`;
    const name = NAME.test(String(error.name)) ? String(error.name) : "Error";
    const code =
      "code" in error && typeof error.code === "string" && CODE.test(error.code) ? [error.code] : [];
    const codes = [...code, ...(String(error.message).match(CODES) ?? [])];
    return [[name, ...codes].join(" "), ...framesOf(error)].join("\n").slice(0, MAX_LENGTH);
  } catch {
    return "An error that cannot be read.";
  }
}

/** Returns the frames of a stack, which follow the message. A message may look like frames, so a stack without its message has no frames. */
function framesOf({ stack, message }: Error): string[] {
  const [head, text] = [String(stack), String(message)];
  const begin = head.indexOf(text);
  if (begin === -1 || !HEAD.test(head.slice(0, begin))) return [];
  return head
    .slice(begin + text.length)
    .split("\n")
    .filter((line) => FRAME.test(line));
}
