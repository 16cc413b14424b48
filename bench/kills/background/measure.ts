/** Counts of the scenario `background`, as rows of `results.json`. Pure. */
import { type ResultRow, summarise } from "../../harness/results.ts";
import type { BackgroundHistory } from "./history.ts";

export function backgroundRows({ kills, batches, finals, given }: BackgroundHistory): ResultRow[] {
  const journal = finals.flatMap((final) => final.journal);
  const row = (metric: string, count: number) =>
    summarise({ case: "kills", system: "dramatis", metric, unit: "count" }, [count]);
  const entries = (type: string) => journal.filter((entry) => entry.type === type).length;
  return [
    row("background: kills", kills.length),
    row("background: turns", entries("turn.started")),
    row("background: batches sent again", batches.filter(({ tries }) => tries > 1).length),
    row("background: operations", entries("tool.requested")),
    row("background: results by handle", given.filter(({ status }) => status === 200).length),
    row("background: outcomes unknown", entries("tool.failed")),
  ];
}
