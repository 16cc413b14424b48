/** The verdict: metrics with another system ahead of Dramatis, and ratios against the budgets. */
import type { ResultRow } from "../harness/results.ts";
import type { SystemName } from "./protocol.ts";

const PEERS: readonly SystemName[] = ["ai-chat-agent", "think"];

/** Time budgets: a metric of Dramatis and its maximum ratio to another time. */
const BUDGETS: readonly { metric: string; times: number; of: { system: string; metric: string } }[] = [
  { metric: "fresh", times: 1.3, of: { system: "agent", metric: "fresh" } },
  { metric: "open", times: 2, of: { system: "agent", metric: "open" } },
  { metric: "open", times: 2, of: { system: "safe-object", metric: "open" } },
  { metric: "three-tool-rounds", times: 3, of: { system: "dramatis", metric: "open" } },
  { metric: "three-tool-rounds", times: 2, of: { system: "safe-object", metric: "three-tool-rounds" } },
];

/** Returns one line per finding. Without rows of Dramatis it returns an empty list. */
export function verdict(rows: readonly ResultRow[]): string[] {
  const time = (system: string, metric: string) =>
    rows.find((row) => row.unit === "ms" && row.system === system && row.metric === metric)?.median;
  const own = rows.filter((row) => row.system === "dramatis" && row.unit === "ms");
  if (own.length === 0) return [];
  const lines = PEERS.map((peer) => {
    const behind = own.filter(
      ({ metric, median }) => (time(peer, metric) ?? Number.POSITIVE_INFINITY) <= median,
    );
    const where = behind.map((row) => row.metric).join(", ");
    return behind.length === 0 ? `ahead of ${peer} in every row` : `NOT ahead of ${peer} in: ${where}`;
  });
  for (const { metric, times, of } of BUDGETS) {
    const ratio = (time("dramatis", metric) ?? Number.NaN) / (time(of.system, of.metric) ?? Number.NaN);
    lines.push(`${metric}: ${ratio.toFixed(2)} × ${of.system} ${of.metric} (budget ${times})`);
  }
  const lengths = own.filter((row) => row.metric.startsWith("messages-"));
  const [shortest, longest] = [lengths.at(0), lengths.at(-1)];
  if (shortest !== undefined && longest !== undefined) {
    const ratio = longest.median / shortest.median;
    lines.push(`${longest.metric}: ${ratio.toFixed(2)} × ${shortest.metric} (budget: flat)`);
  }
  return lines;
}
