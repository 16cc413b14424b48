/** The case `writes`: how many times a conversation writes the content of turns with many or large tool results. */
import { join } from "node:path";
import { rolldown } from "rolldown";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";

/** Ratio that a line must not exceed. */
const MAX_RATIO = 2.5;

/** Bundles the code, because Node cannot run all of it directly, and measures each line once: a run is deterministic. */
export async function runWrites(directory: string): Promise<ResultRow[]> {
  const file = join(directory, "writes.mjs");
  const build = await rolldown({ input: join(BENCH_DIR, "writes/lines.ts"), platform: "node" });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
  const { LINES, ratioOf, runLine }: typeof import("./lines.ts") = await import(file);
  const rows: ResultRow[] = [];
  for (const line of LINES) {
    const of = { case: "writes", system: "dramatis", metric: line.name, unit: "ratio" } as const;
    rows.push(summarise(of, [ratioOf(await runLine(line))]));
  }
  return rows;
}

/** Finds the lines that write too much. */
export function writesVerdict(rows: readonly ResultRow[]): string[] {
  return rows
    .filter(({ median }) => median > MAX_RATIO)
    .map(({ metric, median }) => `${metric}: ${median} is above ${MAX_RATIO}`);
}
