/** The filters of the list of runs, as the address has them. Pure. */
import type { RunStatus } from "../../../src/client/index.ts";
import { RUNS_PATH } from "../route.ts";
import { STATUS_TEXT } from "./run-texts.ts";

/** Empty texts do not filter. */
export interface RunChoice {
  status: RunStatus | "";
  text: string;
}

/** Returns the filters of a query string. It ignores unknown names and statuses. */
export function runChoice(search: string): RunChoice {
  const given = new URLSearchParams(search);
  const status = given.get("status") ?? "";
  // SAFETY: the texts have each status.
  return {
    status: Object.hasOwn(STATUS_TEXT, status) ? (status as RunStatus) : "",
    text: given.get("text") ?? "",
  };
}

/** Returns the address of the list with filters. */
export function runsPath(choice: RunChoice): string {
  const set = Object.entries(choice).filter(([, value]) => value !== "");
  return set.length === 0 ? RUNS_PATH : `${RUNS_PATH}?${new URLSearchParams(set)}`;
}
