/** The case `repositories`: the work of an agent on a repository of 10,000 files and 10,000 commits, beside `git` and `bash`. */
import { join } from "node:path";
import { rolldown } from "rolldown";
import { BENCH_DIR } from "../harness/paths.ts";
import { type ResultRow, summarise } from "../harness/results.ts";

/** Bundles the code, because Node cannot run all of it directly, and measures. */
export async function runRepositories(directory: string): Promise<ResultRow[]> {
  const file = join(directory, "repositories.mjs");
  const build = await rolldown({ input: join(BENCH_DIR, "repositories/rounds.ts"), platform: "node" });
  await build.write({ file, format: "esm", codeSplitting: false });
  await build.close();
  const { measure }: typeof import("./rounds.ts") = await import(file);
  return (await measure()).map(({ samples, ...of }) => summarise({ case: "repositories", ...of }, samples));
}
