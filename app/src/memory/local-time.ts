/** Times as fields of the type `datetime-local` have them: without a zone, in the reader's. Pure. */

/** Returns the moment in the reader's time, to the second. */
export function localInput(iso: string): string {
  const at = new Date(iso);
  const date = [padded(at.getFullYear(), 4), padded(at.getMonth() + 1), padded(at.getDate())].join("-");
  return `${date}T${[at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => padded(part)).join(":")}`;
}

/** Returns the moment of a time of the reader; `undefined` if it is none. */
export function isoOf(local: string): string | undefined {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

function padded(part: number, length = 2): string {
  return String(part).padStart(length, "0");
}
