/** Restores turns from their rows and the texts outside the rows (TURNROW-1). */
import type { TextReference } from "../../../memory/session/long-text.ts";
import { type TurnKey, turnId } from "../../../protocol/ids.ts";
import { type StoredOperation, unpackOperation } from "../core/operation.ts";
import type { StoredParts } from "../core/state.ts";
import type { Reply, Turn } from "../core/turn.ts";
import type { TurnRow } from "../core/turn-events.ts";
import { type PackedCall, unpackCall } from "./call-rows.ts";
import { type PackedMembers, referencesOf, type StoredMembers, unpackMembers } from "./turn-members.ts";
import { elementId, LISTS, type ListName, type PackedLists, partKey, placeOf } from "./turn-packing.ts";

/** A row as read: a whole turn, or a turn with its content in session events. */
export type StoredTurn = (Turn & { readonly events?: never }) | TurnRow;

export type TurnFacts = Pick<
  Turn,
  | "n"
  | "stem"
  | "status"
  | "agentId"
  | "caller"
  | "exchange"
  | "clientId"
  | "correlationId"
  | "createdAt"
  | "completedAt"
  | "firstSeq"
  | "lateEntries"
  | "queued"
  | "waiting"
  | "error"
  | "silent"
  | "issues"
  | "regenerates"
  | "edits"
  | "replacedBy"
>;

/** The columns of a turn's row; the body is JSON. */
export type TurnColumns = { n: number; status: string; body: string };

export type ReadTexts = (references: readonly TextReference[]) => ReadonlyMap<string, string>;

/** The newest version of a list's element. */
interface Element {
  packed: PackedMembers | PackedCall;
  isInPart: boolean;
}

/** Default values. Rows leave out members with these values. */
const DEFAULTS = { recoveries: 0, issues: {} } as const;

/** Returns a turn's facts without reading its texts. */
export function factsOf({ n, status, body }: TurnColumns): TurnFacts {
  // The members of summaries are in every row.
  return { ...DEFAULTS, ...JSON.parse(body), n, status };
}

/** Restores a turn. `stored` has the parts outside its row, if any. */
export function unpackTurn(
  { n, status, body }: TurnColumns,
  read: ReadTexts,
): { turn: StoredTurn; stored?: StoredParts } {
  const { $parts: parts = [], replies, operations, calls, ...head } = JSON.parse(body);
  const rowLists = { replies, operations, calls };
  const key: TurnKey = { n, stem: head.stem };
  const references: TextReference[] = parts.map((bytes: number, index: number) => ({
    key: partKey(key, index),
    bytes,
  }));
  const texts = read(references);
  const layers = references.map((part): PackedLists => JSON.parse(texts.get(part.key) ?? ""));
  const found = LISTS.map((list) => ({ list, elements: newestOf(layers, rowLists, list) }));
  const members = read([
    ...referencesOf(head, turnId(key)),
    ...found.flatMap(({ list, elements = [] }) =>
      elements.flatMap(({ packed }) => referencesOfElement(key, list, packed)),
    ),
  ]);
  const moved = new Map<string, object>();
  const owned = new Map<string, StoredMembers>();
  const restore = (packed: PackedMembers, id: string) => {
    const { owner, stored } = unpackMembers(packed, id, members);
    if (stored.size > 0) owned.set(id, stored);
    return owner;
  };
  const turn: Record<string, unknown> = {
    ...DEFAULTS,
    snapshotSeq: head.firstSeq,
    ...restore(head, turnId(key)),
    n,
    status,
  };
  for (const { list, elements } of found) {
    if (elements === undefined) continue;
    turn[list] = elements.map(({ packed, isInPart }, index) => {
      const element = Array.isArray(packed)
        ? unpackCall(packed, head.createdAt)
        : wholeForm(list, restore(packed, idOf(key, list, packed)), turn.replies);
      if (isInPart) moved.set(placeOf(list, index), element);
      return element;
    });
  }
  const hasParts = parts.length > 0 || owned.size > 0;
  return {
    // SAFETY: only `packTurn` writes these columns.
    turn: turn as unknown as StoredTurn,
    ...(hasParts ? { stored: { parts, moved, texts: owned } } : {}),
  };
}

function wholeForm(list: ListName, element: Record<string, unknown>, replies: unknown): object {
  if (list !== "operations") return element;
  // SAFETY: only `packTurn` writes operations, and the lists in the order of `LISTS`.
  const operation = element as unknown as StoredOperation;
  return unpackOperation(operation, (replies as Reply[] | undefined)?.[operation.reply]?.at);
}

/** Returns the newest version of each element: from the row, or else from the last part that has it. */
function newestOf(layers: readonly PackedLists[], row: PackedLists, list: ListName): Element[] | undefined {
  const inRow = row[list];
  if (inRow === undefined) return undefined;
  const newest: Element[] = [];
  for (const layer of layers) {
    for (const [index, packed] of Object.entries(layer[list] ?? {}))
      newest[Number(index)] = { packed, isInPart: true };
  }
  for (const [index, packed] of Object.entries(inRow)) newest[Number(index)] = { packed, isInPart: false };
  return newest;
}

function referencesOfElement(
  key: TurnKey,
  list: ListName,
  packed: PackedMembers | PackedCall,
): TextReference[] {
  return Array.isArray(packed) ? [] : referencesOf(packed, idOf(key, list, packed));
}

function idOf(key: TurnKey, list: ListName, packed: PackedMembers): string {
  return elementId(key, list, { item: Number(packed.item) }) ?? "";
}
