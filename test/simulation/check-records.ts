/** Checks of the turns in the directory. Pure. */
import { isDeepStrictEqual } from "node:util";
import { turnRecord } from "../../src/agents/conversation/reads/turn-record.ts";
import { firedIn, type Scope } from "./scope.ts";

/** The directory ends with the newest state of each turn. */
export function checkRecords(scope: Scope): void {
  const { outcome, fail } = scope;
  // As for the usage: without a wake-up, the next turn reports to the directory.
  const unarmed = firedIn(scope, ({ port, kind }) => port === "window.open" && kind === "error") > 0;
  if (unarmed && outcome.lives > 1) return;
  const due = [...outcome.contents.values()].map((turn) => turnRecord(outcome.stored.record, turn));
  const listed = new Map(outcome.listed.map((record) => [record.id, record]));
  if (listed.size !== due.length || outcome.listed.length !== due.length)
    fail("records", `The directory has ${listed.size} turns of ${due.length}.`);
  for (const record of due) {
    const found = listed.get(record.id);
    if (!isDeepStrictEqual(found, record))
      fail("records", `The directory has ${JSON.stringify(found)}, the actor ${JSON.stringify(record)}.`);
  }
}
