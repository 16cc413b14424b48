/** Parts of a file of lines, as an actor imports them. */
import type { ImportPart } from "./data-api.ts";

/** Characters and lines of a part that an actor takes at once. */
const PART_LENGTH = 512 * 1024;
const PART_LINES = 500;

/** Passes lines to `take` in parts of the transfer `attempt`. Returns the number of lines. Without lines, there is no part. */
export async function sendParts(
  lines: AsyncIterable<string>,
  attempt: string,
  take: (part: ImportPart) => Promise<unknown>,
): Promise<number> {
  let part: string[] = [];
  let length = 0;
  let from = 1;
  const pass = async (isLast: boolean) => {
    await take({ from, lines: part, isLast, attempt });
    from += part.length;
    [part, length] = [[], 0];
  };
  for await (const line of lines) {
    if (part.length > 0 && (length + line.length > PART_LENGTH || part.length === PART_LINES))
      await pass(false);
    part.push(line);
    length += line.length;
  }
  if (part.length > 0) await pass(true);
  return from - 1;
}
