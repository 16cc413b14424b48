/** Ids for operations that have none yet. */
import { systemIds } from "../../../ports/system.ts";

/** A new operation id; ids of one isolate ascend. */
export function newOperationId(): string {
  return `op_${systemIds.ulid()}`;
}
