/** The case `memory`: how well an agent's memory finds the turns of LoCoMo that answer a question, beside plain FTS5. */
import { join } from "node:path";
import { rolldown } from "rolldown";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";

/** Minimum of a metric of `dramatis`, in percent. */
const LEAST: { case: string; metric: string; percent: number }[] = [
  { case: "locomo", metric: "R@10", percent: 75 },
  { case: "locomo-6-10", metric: "R@10", percent: 74 },
  { case: "locomo", metric: "R@5", percent: 67 },
  { case: "locomo", metric: "R@10, no stem in common", percent: 33 },
  { case: "locomo", metric: "R@10, a time is named", percent: 77 },
];

/** Bundles the code, because Node cannot run all of it directly, and measures. A run is deterministic. */
export async function runMemory(directory: string): Promise<ResultRow[]> {
  const file = join(directory, "memory.mjs");
  const build = await rolldown({ input: join(BENCH_DIR, "memory/measure.ts"), platform: "node" });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
  process.env.DRAMATIS_DATA ??= join(BENCH_DIR, "../../shared/data");
  const { measure }: typeof import("./measure.ts") = await import(file);
  const figures = await measure(join(BENCH_DIR, "../app/public/word-vectors.bin"));
  return figures.map(({ percent, ...of }) => summarise({ ...of, unit: "percent" }, [percent]));
}

/** Returns the figures below their minimum, and the shapes with a better result of plain FTS5. */
export function memoryVerdict(rows: readonly ResultRow[]): string[] {
  const of = (system: string, name: string, metric: string) =>
    rows.find((row) => row.system === system && row.case === name && row.metric === metric)?.median ??
    Number.NaN;
  const low = LEAST.flatMap((least) => {
    const percent = of("dramatis", least.case, least.metric);
    return percent >= least.percent
      ? []
      : [`${least.case} ${least.metric}: ${percent} is below ${least.percent}`];
  });
  const worse = rows
    .filter(({ system, metric }) => system === "fts5" && metric.startsWith("R@"))
    .filter((row) => !(of("dramatis", row.case, row.metric) >= row.median))
    .map((row) => `${row.case} ${row.metric}: below fts5`);
  const gain = of("dramatis", "locomo", "R@10") - of("dramatis without vectors", "locomo", "R@10");
  return [...low, ...worse, `Vectors add ${gain.toFixed(1)} points to R@10.`];
}
