/** Converts times for fields of the type `datetime-local`, which are in the reader's time zone. Pure. */

/** Returns a time in the reader's time zone, to the second. */
export function localInput(iso: string): string {
  const at = new Date(iso);
  const date = [padded(at.getFullYear(), 4), padded(at.getMonth() + 1), padded(at.getDate())].join("-");
  return `${date}T${[at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => padded(part)).join(":")}`;
}

/** Returns the ISO time of a time in the reader's zone; `undefined` if the text is not a time. */
export function isoOf(local: string): string | undefined {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString();
}

function padded(part: number, length = 2): string {
  return String(part).padStart(length, "0");
}
