/** The statements and rows of the runs in lists. */
import type { RunSummary } from "../protocol/run-schemas.ts";
import type { RunStatus } from "../protocol/workflow-run.ts";
import { defined } from "../shared/defined.ts";
import { bothOrders } from "../shared/page.ts";
import { toIso } from "../shared/time.ts";

export type RunRow = {
  created_at: number;
  id: string;
  started_by: string;
  library: string;
  workflow: string;
  version: number;
  project_id: string;
  status: string;
  ended_at: number | null;
  error_code: string | null;
  /** The column `name_key` has it in lower case. */
  name: string | null;
  input_preview: string | null;
  /** 0 for the last row that the page looked at, if other rows follow. */
  found: 0 | 1;
};

/** The number of a run's newest journal entry only grows, so a late put is a no-op. */
export const PUT_RUN = `INSERT INTO runs
  (tenant, created_at, id, started_by, library, workflow, version, project_id, status, seq, ended_at, error_code, name,
  name_key, input_preview)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
ON CONFLICT DO UPDATE SET status = excluded.status, seq = excluded.seq, ended_at = excluded.ended_at,
  error_code = excluded.error_code
WHERE excluded.seq > runs.seq`;

export const ACTIVE_RUNS = `SELECT COUNT(*) AS active FROM runs INDEXED BY runs_by_status
WHERE tenant = ?1 AND status IN ('running', 'waiting') AND project_id = ?2`;

/** The runs of a list. Absent members do not filter. */
interface RunsOf {
  starter?: string;
  status?: string;
  workflow?: { library: string; id: string; version?: number };
  /** A part of the name, or of `library/id` of the workflow, in lower case. */
  text?: string;
}

/** Most runs that a page of a list looks at. */
const MAX_SCANNED_RUNS = 2_000;

/**
 * Returns the statement of a list of runs, and the values from `?5` on. The list reads one index: of its starter, otherwise of its
 * workflow, otherwise of its status. The other filters leave out rows of that. `found` is 1 for a row of the list. Another row is the last
 * row that a full scan looked at.
 */
export function listRuns(
  orderName: "asc" | "desc",
  { starter, status, workflow, text }: RunsOf,
): [statement: string, values: (string | number)[]] {
  const values: (string | number)[] = [];
  const place = (value: string | number) => `?${values.push(value) + 4}`;
  const equal = (column: string, value: string | number | undefined) =>
    value === undefined ? [] : [`${column} = ${place(value)}`];
  const byStarter = equal("started_by", starter);
  const byWorkflow = [...equal("library", workflow?.library), ...equal("workflow", workflow?.id)];
  const byStatus = equal("status", status);
  const others = equal("version", workflow?.version);
  if (text !== undefined) {
    const part = place(text);
    others.push(`(instr(name_key, ${part}) > 0 OR instr(lower(library || '/' || workflow), ${part}) > 0)`);
  }
  const [[index, indexed] = ["", []], ...unused] = (
    [
      [" INDEXED BY runs_by_starter", byStarter],
      [" INDEXED BY runs_by_workflow", byWorkflow],
      [" INDEXED BY runs_by_status", byStatus],
    ] as const
  ).filter(([, conditions]) => conditions.length > 0);
  const found = [...unused.flatMap(([, conditions]) => conditions), ...others].join(" AND ");
  const statement = bothOrders((comparison, order) => {
    const range = ["tenant = ?1", `(created_at, id) ${comparison} (?2, ?3)`, ...indexed].join(" AND ");
    const rows = `FROM runs${index} WHERE ${range} ORDER BY created_at ${order}, id ${order}`;
    // SQLite reads no further row after the last row of the page. A window function would read all of them.
    return found === ""
      ? `SELECT *, 1 AS found ${rows} LIMIT ?4`
      : `SELECT *, 1 AS found FROM (SELECT * ${rows} LIMIT ${MAX_SCANNED_RUNS}) WHERE ${found}
UNION ALL SELECT *, 0 FROM (SELECT * ${rows} LIMIT 1 OFFSET ${MAX_SCANNED_RUNS - 1}) LIMIT ?4`;
  });
  return [statement[orderName], values];
}

export function toRun(row: RunRow): RunSummary {
  return {
    id: row.id,
    workflow: { library: row.library, id: row.workflow, version: row.version },
    projectId: row.project_id,
    // SAFETY: only putRun writes this column, from a value of this type.
    status: row.status as RunStatus,
    startedBy: row.started_by,
    createdAt: toIso(row.created_at),
    ...defined({
      name: row.name ?? undefined,
      inputPreview: row.input_preview ?? undefined,
      endedAt: row.ended_at === null ? undefined : toIso(row.ended_at),
      errorCode: row.error_code ?? undefined,
    }),
  };
}
