/** Gives the recorded work in flight what it waits for: results of clients, approvals, and results by handles. */

import { awaitsApproval, isOpen, type Operation } from "../../../src/agents/conversation/core/operation.ts";
import { operationId } from "../../../src/protocol/ids.ts";
import { hasSideCall, isExtracting } from "../running-work.ts";
import type { Recording } from "./format.ts";
import type { Life, Stage } from "./stage.ts";
import { RECORDED_USER } from "./take.ts";

/** The result of a recorded call that waits for a client or for the holder of a handle. */
const LATE_RESULT = "One.";

/** Reports whether a conversation has work in flight. */
function isAtWork({ runtime }: Life): boolean {
  if (!runtime.exists) return false;
  return runtime.busy || hasSideCall(runtime) || isExtracting(runtime) || runtime.state.queue !== undefined;
}

/** Returns the ids of the open operations of active turns that match. */
export function openOperations({ runtime }: Life, matches: (operation: Operation) => boolean): string[] {
  return [...runtime.state.active.values()].flatMap((turn) =>
    turn.operations
      .filter((operation) => isOpen(operation) && matches(operation))
      .map(({ item }) => operationId(turn, item)),
  );
}

/** Approves all calls that wait for a person. */
async function approveAll(life: Life): Promise<void> {
  const caller = { type: "user", userId: RECORDED_USER } as const;
  for (const id of openOperations(life, awaitsApproval))
    await life.runtime.results.approve(id, { approved: true, caller });
}

/**
 * Wakes a recorded conversation with its peers, and answers all that they wait for, until they have no work in flight. A conversation of a
 * call that ends gives its result to its caller.
 */
export async function finish(stage: Stage, { handles = [] }: Pick<Recording, "handles">): Promise<Life> {
  const lives = [stage, ...stage.peers].map((woken) => {
    woken.isOpen = true;
    return woken.begin();
  });
  for (const { runtime } of lives) await runtime.wake();
  const [life = stage.life] = lives;
  const { results } = life.runtime;
  const asked = openOperations(life, ({ target }) => target === "client");
  if (asked.length > 0) await results.submit(asked.map((id) => ({ operationId: id, result: LATE_RESULT })));
  for (const one of lives) await approveAll(one);
  for (const handle of handles) await results.complete(handle, { result: LATE_RESULT });
  await stage.until(() => ![stage, ...stage.peers].some((one) => isAtWork(one.life)));
  return life;
}
