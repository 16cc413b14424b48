/** `npm run bench [-- CASE [OPTIONS]]`: runs a case and prints its results. Without options it also stores them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runAborts } from "./aborts/case.ts";
import { runAgentLoad } from "./agent-load/case.ts";
import { runBusy } from "./busy/case.ts";
import { correctionsVerdict, runCorrections } from "./corrections/case.ts";
import { decodeVerdict, runDecode } from "./decode/case.ts";
import { delegationVerdict, runDelegation } from "./delegation/case.ts";
import { eventLogVerdict, runEventLog } from "./event-log/case.ts";
import { fanoutVerdict, runFanout } from "./fanout/case.ts";
import { formatTable, type ResultRow, replaceResults } from "./harness/results.ts";
import { hooksVerdict, runHooks } from "./hooks/case.ts";
import { hostileVerdict, runHostile } from "./hostile/case.ts";
import { runKills } from "./kills/case.ts";
import { runLoad } from "./load/case.ts";
import { memoryVerdict, runMemory } from "./memory/case.ts";
import { runMemoryLoad } from "./memory-load/case.ts";
import { readersVerdict, runReaders } from "./readers/case.ts";
import { runRepositories } from "./repositories/case.ts";
import { runRunTrees, runTreesVerdict } from "./run-trees/case.ts";
import { serveTurns } from "./turns/case.ts";
import { verdict } from "./turns/verdict.ts";
import { runWrites, writesVerdict } from "./writes/case.ts";

interface Case {
  /** Runs the case in a temporary directory. */
  run(directory: string, options: readonly string[]): Promise<ResultRow[]>;
  /** Returns findings to print below the table. */
  verdict?(rows: readonly ResultRow[]): string[];
}

const CASES: Record<string, Case> = {
  turns: { run: serveTurns, verdict },
  "agent-load": { run: runAgentLoad },
  busy: { run: runBusy },
  corrections: { run: runCorrections, verdict: correctionsVerdict },
  decode: { run: runDecode, verdict: decodeVerdict },
  delegation: { run: runDelegation, verdict: delegationVerdict },
  "event-log": { run: runEventLog, verdict: eventLogVerdict },
  fanout: { run: runFanout, verdict: fanoutVerdict },
  hooks: { run: runHooks, verdict: hooksVerdict },
  kills: { run: runKills },
  aborts: { run: runAborts },
  hostile: { run: runHostile, verdict: hostileVerdict },
  load: { run: runLoad },
  "memory-load": { run: runMemoryLoad },
  memory: { run: runMemory, verdict: memoryVerdict },
  readers: { run: runReaders, verdict: readersVerdict },
  repositories: { run: runRepositories },
  "run-trees": { run: runRunTrees, verdict: runTreesVerdict },
  writes: { run: runWrites, verdict: writesVerdict },
};

async function main(name: string | undefined, options: readonly string[]): Promise<void> {
  const names = name === undefined ? Object.keys(CASES) : [name];
  for (const caseName of names) {
    const benchCase = CASES[caseName];
    if (benchCase === undefined) {
      throw new Error(`There is no case "${caseName}". Use one of: ${Object.keys(CASES).join(", ")}.`);
    }
    await runCase(caseName, benchCase, options);
  }
}

async function runCase(name: string, benchCase: Case, options: readonly string[]): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "dramatis-bench-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  console.log(`${name}: building …`);
  const rows = await benchCase.run(directory, options);
  const byCase = Object.entries(Object.groupBy(rows, (row) => row.case));
  const tables = byCase.map(([of, some = []]) =>
    byCase.length > 1 ? `${of}\n${formatTable(some)}` : formatTable(some),
  );
  console.log([...tables, ...(benchCase.verdict?.(rows) ?? [])].join("\n"));
  // With options, the run differs from the defined case.
  if (options.length === 0) await replaceResults(name, rows);
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

const [caseName, ...options] = process.argv.slice(2);
await main(caseName, options);
