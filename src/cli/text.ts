/**
 * Text for people: tables and lists of facts.
 *
 * CLITEXT-1  Tables fit the terminal. Only free text is shortened: ids stay whole, so people can copy them.
 * CLITEXT-2  Text of people and models has no control characters, so it cannot steer the terminal.
 */
import type { ElicitationView } from "../protocol/elicitation.ts";

/** Columns without a terminal. */
export const DEFAULT_WIDTH = 80;
/** Free text is not shortened below this length. */
const LEAST = 10;
const GAP = "  ";

/** C0 and C1 controls except tab and line feed, and the marks that change the direction of text. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it removes them.
const CONTROLS = /[\0-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Removes control characters (CLITEXT-2). */
export function clean(text: string): string {
  return text.replace(CONTROLS, "");
}

/** Returns JSON text. Control characters are escaped, so the text is safe on a terminal and has the same value (CLITEXT-2). */
export function jsonText(value: unknown, indent?: number): string {
  return escapedJson(JSON.stringify(value, null, indent) ?? "");
}

/** Escapes the control characters of JSON text, as `jsonText`. */
export function escapedJson(text: string): string {
  return text.replace(CONTROLS, (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Returns text as one line of at most so many characters. */
export function short(text: string, width: number): string {
  const line = clean(text).replace(/\s+/g, " ").trim();
  return line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1)).trimEnd()}…`;
}

/** A column of a table. `free`: its text may be shortened. */
export interface Column {
  title: string;
  free?: true;
}

/** Returns a table, or a block per row if the ids do not fit the width (CLITEXT-1). */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width = DEFAULT_WIDTH,
): string {
  const cells = rows.map((row) => row.map((cell) => clean(cell).replace(/\s+/g, " ")));
  const widest = columns.map(({ title }, at) =>
    Math.max(title.length, ...cells.map((row) => row[at]?.length ?? 0)),
  );
  const free = columns.flatMap(({ free }, at) => (free ? [at] : []));
  const fixed = widest.reduce((sum, length, at) => (free.includes(at) ? sum : sum + length), 0);
  const left = width - fixed - GAP.length * (columns.length - 1);
  if (left < free.length * LEAST) return blocks(columns, cells, width);
  const widths = [...widest];
  let room = left;
  // A short column leaves its room to the longer columns.
  for (const [done, at] of free.toSorted((a, b) => (widest[a] ?? 0) - (widest[b] ?? 0)).entries()) {
    widths[at] = Math.min(widest[at] ?? 0, Math.floor(room / (free.length - done)));
    room -= widths[at];
  }
  const line = (row: readonly string[]) =>
    row
      .map((cell, at) => (free.includes(at) ? short(cell, widths[at] ?? 0) : cell).padEnd(widths[at] ?? 0))
      .join(GAP)
      .trimEnd();
  return [heading(line(columns.map(({ title }) => title))), ...cells.map(line)].join("\n");
}

function blocks(columns: readonly Column[], rows: readonly (readonly string[])[], width: number): string {
  return rows
    .map((row) =>
      facts(
        columns.map(({ title }, at): Fact => [title.toLowerCase(), row[at]]),
        width,
      ),
    )
    .join("\n\n");
}

/** A name and its value. Facts without a value are left out. */
export type Fact = readonly [name: string, value: string | undefined];

/** Returns a line per fact, with aligned values. Long values continue on further lines. */
export function facts(list: readonly Fact[], width = DEFAULT_WIDTH): string {
  const present = list.flatMap(([name, value]) => (value ? [[clean(name), clean(value)] as const] : []));
  const longest = Math.max(0, ...present.map(([name]) => name.length));
  return present
    .map(([name, value]) => {
      const start = name.padEnd(longest) + GAP;
      return start + wrap(value, width - start.length).join(`\n${" ".repeat(start.length)}`);
    })
    .join("\n");
}

/** Breaks text at spaces into lines of a width. A longer word stays whole. */
export function wrap(text: string, width: number): string[] {
  return text.split("\n").flatMap((paragraph) => {
    const lines = [""];
    for (const word of paragraph.split(" ")) {
      const line = lines.at(-1) ?? "";
      if (line !== "" && line.length + 1 + word.length > width) lines.push(word);
      else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
    }
    return lines;
  });
}

/** Returns a heading in bold. Output without colors drops the bold. */
export function heading(text: string): string {
  return `\u001b[1m${text}\u001b[22m`;
}

/** Returns the text of an answer for a terminal: without control characters, except the bold of headings (CLITEXT-2). */
export function shown(text: string): string {
  return text
    .split("\n")
    .map((line) => {
      // biome-ignore lint/suspicious/noControlCharactersInRegex: it finds headings.
      const [, title] = /^\u001b\[1m(.*)\u001b\[22m$/.exec(line) ?? [];
      return title === undefined ? clean(line) : heading(clean(title));
    })
    .join("\n");
}

/** Returns the sections that have text, each below its title, with an empty line between them. */
export function sections(...parts: (readonly [title: string, text: string])[]): string {
  return parts
    .flatMap(([title, text]) => (text === "" ? [] : [`${heading(clean(title))}\n${text}`]))
    .join("\n\n");
}

/** Returns `2026-03-01 10:00:00Z`. */
export function time(iso: string): string {
  return iso.replace("T", " ").replace(/\.\d+Z$/, "Z");
}

/** Returns a duration: `850 ms`, `3.2 s`, `4 min 5 s` or `3 h 4 min`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 59_950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const seconds = Math.round(milliseconds / 1000);
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? `${minutes} min ${seconds % 60} s`
    : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns `$0.0012`. */
export function dollars(amount: number): string {
  return `$${amount.toFixed(amount !== 0 && amount < 1 ? 4 : 2)}`;
}

/** Returns `1 call`, or `2 calls`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Returns the question of an MCP server, with the option that names it in an answer; empty without a question. */
export function questionText(question: ElicitationView | undefined): string {
  return question === undefined ? "" : ` asks (--round ${question.round}): ${question.message}`;
}
