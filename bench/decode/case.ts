/**
 * The case `decode`: compares the gateway's decoding of a provider's stream with the provider's official SDK, by
 * throughput and by latency per event.
 */
import { join } from "node:path";
import { rolldown } from "rolldown";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";

/** Bundles the code, because Node cannot run all of it directly, and measures. */
export async function runDecode(directory: string): Promise<ResultRow[]> {
  const file = join(directory, "decode.mjs");
  const build = await rolldown({ input: join(BENCH_DIR, "decode/rounds.ts"), platform: "node" });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
  const { measure }: typeof import("./rounds.ts") = await import(file);
  return (await measure()).flatMap(({ provider, system, rate, latency }) => [
    summarise({ case: "decode", system, metric: `${provider} throughput`, unit: "MB/s" }, rate),
    summarise({ case: "decode", system, metric: `${provider} latency of 1000 events`, unit: "ms" }, latency),
  ]);
}

/** Returns the measures with an official SDK ahead of the gateway. */
export function decodeVerdict(rows: readonly ResultRow[]): string[] {
  return rows
    .filter(({ system }) => system !== "dramatis")
    .map((theirs) => {
      const ours = rows.find(({ system, metric }) => system === "dramatis" && metric === theirs.metric);
      const ratio = (ours?.median ?? Number.NaN) / theirs.median;
      const isBetter = theirs.unit === "MB/s" ? ratio >= 1 : ratio <= 1;
      return `${theirs.metric}: ${isBetter ? "" : "NOT "}ahead of ${theirs.system} (${ratio.toFixed(2)} ×)`;
    });
}
