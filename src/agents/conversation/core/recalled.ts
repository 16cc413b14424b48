/**
 * The note with memories recalled for a cycle. Pure.
 *
 * RECALL-2  A cycle asks once, before its first call of a model, and its later calls send the same note. A crash before the outcome of that
 *           call asks again.
 * RECALL-3  The note follows the history, so the beginning of the request is that of the turn before. It is JSON, quoted as data, with the
 *           ids of the memories, and marks untrusted memories.
 * RECALL-4  The note has at most the persona's number of tokens. The least relevant memories are left out first.
 * RECALL-5  If a memory does not answer in time, the turn continues without it. The record of the turn notes this.
 * KNOWLEDGE-2  With `knowledge` in its persona, a cycle also has a note about the artifacts of the project. It is read with one query, beside the
 *              memories and under the same rules. The note is untrusted content with the origin `document`.
 */
import type { ShownMemory } from "../../../library/hooks/hook-inputs.ts";
import { RECALLED, shownMemory } from "../../../library/memory/shown-memory.ts";
import { estimateTokens } from "../../../memory/session/tokens.ts";
import type { Memory } from "../../../protocol/memory-schemas.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { JournalEntry } from "./journal-entry.ts";
import type { Recalled, Turn, UsedMemory } from "./turn.ts";

const MORE = " Call `recall` to find more.";

/** Search results within a budget: the members for a hook, and the part stored with the cycle. */
export interface RecallResult {
  recalled: Recalled;
  memories: ShownMemory[];
}

/** Renders memories, the most relevant one first, within `tokens` estimated tokens (RECALL-4). `hasTools`: the model can call `recall`. */
export function renderRecalled(
  found: readonly Memory[],
  { tokens, hasTools }: { tokens: number; hasTools: boolean },
): RecallResult {
  const head = hasTools ? RECALLED + MORE : RECALLED;
  const memories: ShownMemory[] = [];
  let note: string | undefined;
  for (const memory of found) {
    const shown = shownMemory(memory);
    const next = `${note ?? head}\n${JSON.stringify(lineOf(shown))}`;
    if (estimateTokens(next) > tokens) continue;
    note = next;
    memories.push(shown);
  }
  const used = memories.map(({ id, version }) => ({ id, version }));
  const isTainted = memories.some(({ tainted }) => tainted === true);
  return {
    recalled: { used, ...(note === undefined ? {} : { note }), ...(isTainted ? { tainted: true } : {}) },
    memories,
  };
}

function lineOf({ version: _version, ...shown }: ShownMemory): JsonObject {
  return shown;
}

/** Returns the record of a cycle without an answer from memory (RECALL-5). */
export function failedRecall(failed: string): Recalled {
  return { used: [], failed };
}

/** Returns the members of a turn before its next cycle: earlier recalled memories move to `recalledBefore` (RECALL-2). */
export function archiveRecalled({
  recalled,
  recalledBefore = [],
}: Pick<Turn, "recalled" | "recalledBefore">): Partial<Turn> {
  if (recalled === undefined || recalled.used.length === 0) return {};
  const tainted = recalled.tainted === true ? { tainted: true as const } : {};
  return {
    recalledBefore: [...recalledBefore, ...recalled.used.map((memory) => ({ ...memory, ...tainted }))],
  };
}

/** Returns a recall with the note about artifacts, if the cycle has asked for it (KNOWLEDGE-2). */
export function withKnowledge(
  found: RecallResult | undefined,
  asked: Pick<Recalled, "knowledge"> | undefined,
): RecallResult | undefined {
  if (asked === undefined) return found;
  const { recalled, memories } = found ?? { recalled: { used: [] }, memories: [] };
  return { recalled: { ...recalled, ...asked }, memories };
}

/** Returns the recalled memories that an ended turn keeps. */
export function withoutRecallNote({ recalled }: Pick<Turn, "recalled">): Pick<Turn, "recalled"> {
  if (recalled === undefined) return {};
  const { note: _note, knowledge: _knowledge, ...kept } = recalled;
  return { recalled: kept };
}

/**
 * Returns the entry of the memories recalled for a cycle: ids and versions, or the code of the failure. Returns an empty list without
 * memories.
 */
export function recalledEntries(turn: number, recalled: Recalled | undefined): JournalEntry[] {
  if (recalled === undefined) return [];
  const { used, failed } = recalled;
  if (failed !== undefined) return [{ type: "memory.recalled", turn, data: { memories: [], code: failed } }];
  if (used.length === 0) return [];
  return [{ type: "memory.recalled", turn, data: { memories: usedOnce(used) } }];
}

/** Returns the memories that a list names more than once only once, the last version of each. */
export function usedOnce(used: readonly UsedMemory[]): { id: string; version: number }[] {
  return [...new Map(used.map(({ id, version }) => [`${id} ${version}`, { id, version }])).values()];
}
