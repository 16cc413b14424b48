/** The case `event-log`: pages and searches of a tenant's log with many conversations. */
import { join } from "node:path";
import { rolldown } from "rolldown";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";

/** Most milliseconds of a read, as its 95th percentile. */
const MAX_MS = 100;

/** Bundles the code, because Node cannot run all of it directly. */
export async function runEventLog(directory: string, options: readonly string[]): Promise<ResultRow[]> {
  const file = join(directory, "event-log.mjs");
  const build = await rolldown({ input: join(BENCH_DIR, "event-log/measure.ts"), platform: "node" });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
  const { measure }: typeof import("./measure.ts") = await import(file);
  const at = options.indexOf("--conversations");
  const measured = await measure(
    join(directory, "log.sqlite"),
    at === -1 ? 100_000 : Number(options[at + 1]),
  );
  const of = { case: "event-log", system: "dramatis" } as const;
  return measured.map(({ metric, unit, value }) => summarise({ ...of, metric, unit }, [value]));
}

/** Finds slow reads. */
export function eventLogVerdict(rows: readonly ResultRow[]): string[] {
  return rows
    .filter(({ unit, median }) => unit === "ms" && median > MAX_MS)
    .map(({ metric, median }) => `${metric}: ${median} ms is above ${MAX_MS} ms`);
}
