/** New operation ids (MAIL-1). */
import { systemIds } from "../../../ports/system.ts";

/**
 * Returns a new operation id. Ids of one isolate ascend.
 *
 * @example mailbox.send({ operationId: newOperationId(), to, type: "order.placed", body: { order } })
 */
export function newOperationId(): string {
  return `op_${systemIds.ulid()}`;
}
