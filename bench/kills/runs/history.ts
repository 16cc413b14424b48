/** The history of the scenario `runs`, as plain data. */
import type { RunEntryView, RunView } from "../../../src/protocol/run-schemas.ts";
import type { Kill } from "../history.ts";

/** A request to the desk. */
export interface DeskHit {
  /** The desk must get at most one request of this operation. */
  isOnce: boolean;
  /** Names the errand. */
  call: string;
  operationId: string;
  /** The run of the requesting task; empty for the tool of an agent. */
  runId: string;
}

/** A run that has ended. */
export interface EndedRun {
  view: RunView;
  journal: RunEntryView[];
  /** The runs of its sub-workflows that sent requests to the desk. */
  below: EndedRun[];
}

export interface RunsHistory {
  kills: Kill[];
  hits: DeskHit[];
  runs: EndedRun[];
}
