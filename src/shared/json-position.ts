/** Finds the place of a fault in text that is not JSON. Pure. */

/** Returns the first character that cannot follow the characters before it in JSON. `error` is the error of `JSON.parse` for the text. */
export function faultPosition(error: unknown, text: string): number {
  const known = reportedPosition(error, text);
  if (known !== undefined) return known;
  let [good, bad] = [0, text.length];
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (isBeginning(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

function isBeginning(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    return (reportedPosition(error, text) ?? -1) >= text.length;
  }
}

/** Returns the position in the engine's message, if it has a position. */
function reportedPosition(error: unknown, text: string): number | undefined {
  const message = error instanceof Error ? error.message : "";
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  if (position !== undefined) return Number(position);
  return message.includes("end of JSON") ? text.length : undefined;
}
