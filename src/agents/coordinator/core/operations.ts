/** The operations of a run: one for each token that works. Pure. */
import { calledRunId, operationId, parseItemId } from "../../../protocol/ids.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import type { RunRecord } from "./record.ts";
import type { Again } from "./state.ts";

/**
 * Returns the operation id of a token. All attempts share it, so a repetition is recognized. For a `once` task or a gate, each retry of the
 * run begins another operation (RUNRETRY-2), numbered by the token's `again`.
 */
export function operationOf({ stem }: Pick<RunRecord, "stem">, token: number, again?: Again): string {
  return operationId({ stem, n: token }, again?.operations ?? 0);
}

/** Returns how many operations the token had before this operation. */
export function operationsBefore(operation: string): number {
  return parseItemId(operation)?.item ?? 0;
}

export function tokenOf({ stem }: Pick<RunRecord, "stem">, operation: string): number | undefined {
  const address = parseItemId(operation);
  return address?.prefix === "op" && address.stem === stem ? address.n : undefined;
}

export function childRunId(
  { id, stem }: Pick<RunRecord, "id" | "stem">,
  token: number,
  attempt: number,
): string {
  return calledRunId(operationOf({ stem }, token), attempt, jurisdictionOf(id));
}
