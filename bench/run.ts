/** `npm run bench [-- CASE]`: serves the bundle on plain workerd, runs the case, prints and stores its results. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBundle } from "./harness/bundle.ts";
import { Client } from "./harness/client.ts";
import { ensureInstalled } from "./harness/install.ts";
import { formatTable, type ResultRow, replaceResults } from "./harness/results.ts";
import { serve } from "./harness/workerd.ts";
import { runTurns } from "./turns/case.ts";
import { verdict } from "./turns/verdict.ts";

interface Case {
  run(client: Client): Promise<ResultRow[]>;
  /** Findings to print below the table. */
  verdict(rows: readonly ResultRow[]): string[];
}

const CASES: Record<string, Case> = { turns: { run: runTurns, verdict } };

async function main(name: string | undefined): Promise<void> {
  const names = name === undefined ? Object.keys(CASES) : [name];
  await ensureInstalled();
  for (const caseName of names) {
    const benchCase = CASES[caseName];
    if (benchCase === undefined) {
      throw new Error(`There is no case "${caseName}"; there are: ${Object.keys(CASES).join(", ")}.`);
    }
    await runCase(caseName, benchCase);
  }
}

async function runCase(name: string, benchCase: Case): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "dramatis-bench-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  console.log(`${name}: building …`);
  const server = await serve(await buildBundle(directory), directory);
  const client = new Client(server.port);
  try {
    const rows = await benchCase.run(client);
    console.log([formatTable(rows), ...benchCase.verdict(rows)].join("\n"));
    await replaceResults(name, rows);
  } finally {
    client.close();
    await server.stop();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

await main(process.argv[2]);
