/** `results.json`: one row per case, system and metric. A run replaces the rows of its cases and keeps the others. */
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";
import { RESULTS_FILE } from "./paths.ts";

const rowSchema = z.strictObject({
  case: z.string(),
  system: z.string(),
  metric: z.string(),
  unit: z.enum(["ms", "MB/s", "MB", "kB", "count", "ratio", "percent"]),
  median: z.number(),
  min: z.number(),
  max: z.number(),
  /** Number of samples. */
  runs: z.number(),
});

export type ResultRow = z.infer<typeof rowSchema>;

/** Summarizes the samples of one metric in a row, rounded to meaningful digits. */
export function summarise(
  of: Pick<ResultRow, "case" | "system" | "metric" | "unit">,
  samples: number[],
): ResultRow {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (index: number) => round(sorted[index] ?? Number.NaN);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? at(middle) : round((at(middle - 1) + at(middle)) / 2);
  return { ...of, median, min: at(0), max: at(sorted.length - 1), runs: sorted.length };
}

export async function replaceResults(name: string, rows: ResultRow[]): Promise<void> {
  const stored = existsSync(RESULTS_FILE) ? await readFile(RESULTS_FILE, "utf8") : "[]";
  const others = z
    .array(rowSchema)
    .parse(JSON.parse(stored))
    .filter((row) => row.case !== name && rows.every((fresh) => fresh.case !== row.case));
  await writeFile(RESULTS_FILE, `${JSON.stringify([...others, ...rows], null, 2)}\n`);
}

/** Formats medians as a table: one line per metric, one column per system, with the range in brackets. */
export function formatTable(rows: ResultRow[]): string {
  const systems = [...new Set(rows.map((row) => row.system))];
  const metrics = [...new Set(rows.map((row) => row.metric))];
  const cell = (metric: string, system: string) => {
    const row = rows.find((candidate) => candidate.metric === metric && candidate.system === system);
    if (row === undefined) return "–";
    return row.unit === "count" || row.unit === "ratio" || row.unit === "percent"
      ? `${row.median}`
      : `${row.median} ${row.unit} [${row.min}–${row.max}]`;
  };
  const table = [
    ["", ...systems],
    ...metrics.map((metric) => [metric, ...systems.map((s) => cell(metric, s))]),
  ];
  const widths =
    table[0]?.map((_, column) => Math.max(...table.map((line) => line[column]?.length ?? 0))) ?? [];
  return table
    .map((line) => line.map((text, column) => text.padEnd(widths[column] ?? 0)).join("  "))
    .join("\n");
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000;
}
