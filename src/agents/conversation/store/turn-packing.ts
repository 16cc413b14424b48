/**
 * A turn as its row and as the texts outside the row. Pure.
 *
 * The row holds small and new members. A large member is a separate text. When the row exceeds `ROW_BYTES`, its replies, operations and
 * calls move together to one text, a part. If an element changes later, the row contains it again. Its newest version counts.
 *
 * TURNROW-1  A turn read back equals the turn that was written, after any number of commits.
 * TURNROW-2  A commit writes an active turn's row, which has about `ROW_BYTES` at most, and the new texts.
 * TURNROW-3  The same commit deletes texts that the turn no longer refers to. If the turn's content is in events, texts that its row or its
 *            events refer to stay.
 */
import type { TextReference } from "../../../memory/session/long-text.ts";
import { messageId, operationId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import { fitsUtf8, utf8Length } from "../../../shared/utf8.ts";
import { packOperation } from "../core/operation.ts";
import type { StoredParts } from "../core/state.ts";
import { issuesOf, type Turn } from "../core/turn.ts";
import { isRecorded, type RecordedTurn, turnRow } from "../core/turn-events.ts";
import { type PackedCall, packCall } from "./call-rows.ts";
import { memberKey, type NewTexts, type PackedMembers, packMembers } from "./turn-members.ts";

/** Size of an active turn's row above which its lists move to a part, in bytes. */
const ROW_BYTES = 8 * 1024;
/** Size of a full row's members without its lists above which those over `SMALL_BYTES` become texts, in bytes. */
const HEAD_BYTES = ROW_BYTES / 2;
/** Size above which a member becomes a separate text, in bytes: in all rows, and in full rows. */
const LARGE_BYTES = 4 * 1024;
const SMALL_BYTES = 512;

/** The lists of a turn that move to parts. Elements are appended or replaced. They are never mutated or removed. */
export const LISTS = ["replies", "operations", "calls"] as const;
export type ListName = (typeof LISTS)[number];

/** Packed elements of lists, by index. The calls of a turn without records are absent. */
export type PackedLists = { [List in ListName]?: Record<number, PackedMembers | PackedCall> };

/** The changes of a turn's storage by one commit. */
export interface PackedTurn {
  body: string;
  /** Texts to write after the deletion of `dropped`. */
  texts: NewTexts;
  dropped: string[];
  /** The parts outside the row after the commit; `undefined` without parts, and for a finished turn. */
  stored: StoredParts | undefined;
  /** The texts of the turn's events, by event id. Empty while the turn is active. */
  contents: ReadonlyMap<string, TextReference>;
}

const NO_PARTS: StoredParts = { parts: [], moved: new Map(), texts: new Map() };

/** Packs a turn. `before` has the parts that are already outside its row. */
export function packTurn(turn: Turn, before: StoredParts = NO_PARTS): PackedTurn {
  return isRecorded(turn) ? packRecorded(turn, before) : packWhole(turn, before);
}

export function placeOf(list: ListName, index: number): string {
  return `${list}.${index}`;
}

export function partKey(turn: TurnKey, index: number): string {
  return memberKey(turnId(turn), `part-${index}`);
}

/** Returns the id that the texts of an element's members are stored under; `undefined` if it has no such members. */
export function elementId(turn: TurnKey, list: ListName, { item }: { item: number }): string | undefined {
  if (list === "calls") return undefined;
  return list === "replies" ? messageId(turn, item) : operationId(turn, item);
}

function packWhole(turn: Turn, before: StoredParts): PackedTurn {
  const texts: NewTexts = new Map();
  const owned = new Map(before.texts);
  const pack = (owner: object, id: string, limit = LARGE_BYTES) => {
    const { packed, stored } = packMembers(owner, { id, limit, before: owned.get(id) }, texts);
    if (stored.size > 0) owned.set(id, stored);
    else owned.delete(id);
    return packed;
  };
  const changed = new Map<string, object>();
  const lists: PackedLists = {};
  for (const list of LISTS) {
    if (turn[list] === undefined) continue;
    const elements: Record<number, PackedMembers | PackedCall> = {};
    for (const [index, element] of turn[list].entries()) {
      if (before.moved.get(placeOf(list, index)) === element) continue;
      changed.set(placeOf(list, index), element);
      const id = elementId(turn, list, element);
      elements[index] = id === undefined ? callOf(turn, index) : pack(shortForm(turn, list, index), id);
    }
    lists[list] = elements;
  }
  const own = ownMembers(turn);
  let head = pack(own, turnId(turn));
  let body = bodyOf(head, before.parts, lists);
  if (!fitsUtf8(body, ROW_BYTES) && !fitsUtf8(JSON.stringify(head), HEAD_BYTES)) {
    head = pack(own, turnId(turn), SMALL_BYTES);
    body = bodyOf(head, before.parts, lists);
  }
  let { parts } = before;
  const moved = new Map(before.moved);
  for (const place of changed.keys()) moved.delete(place);
  if (changed.size > 0 && !fitsUtf8(body, ROW_BYTES)) {
    const part = JSON.stringify(lists);
    texts.set(partKey(turn, parts.length), part);
    parts = [...parts, utf8Length(part)];
    for (const [place, element] of changed) moved.set(place, element);
    body = bodyOf(head, parts, Object.fromEntries(Object.keys(lists).map((list) => [list, {}])));
  }
  const stored = parts.length === 0 && owned.size === 0 ? undefined : { parts, moved, texts: owned };
  // A changed member is rewritten under the same key.
  const dropped = droppedKeys(
    before,
    (id, member) => owned.get(id)?.get(member) === before.texts.get(id)?.get(member),
  );
  return { body, texts, dropped, stored, contents: new Map() };
}

function packRecorded(turn: RecordedTurn, before: StoredParts): PackedTurn {
  const texts: NewTexts = new Map();
  const id = turnId(turn);
  const own = { id, limit: LARGE_BYTES, before: before.texts.get(id) };
  const { packed, stored } = packMembers(ownMembers(turnRow(turn)), own, texts);
  const contents = contentsOf(turn, before);
  const kept = new Set([...contents.values()].map(({ key }) => key));
  for (const member of stored.keys()) kept.add(memberKey(id, member));
  const dropped = droppedKeys(before, (owner, member) => kept.has(memberKey(owner, member)));
  return {
    body: JSON.stringify({ ...packed, calls: turn.calls?.map((_, index) => callOf(turn, index)) }),
    texts,
    dropped: [...dropped, ...before.parts.map((_, index) => partKey(turn, index))],
    stored: undefined,
    contents,
  };
}

/** Returns the stored texts that equal the contents of the turn's events (see `turnEvents`), by event id. */
function contentsOf(turn: Turn, { texts }: StoredParts): Map<string, TextReference> {
  const contents = new Map<string, TextReference>();
  const add = (event: string, id: string, member: string, value: unknown, isJson: boolean) => {
    const stored = texts.get(id)?.get(member);
    if (stored === undefined || stored.value !== value || stored.isJson !== isJson) return;
    contents.set(event, { key: memberKey(id, member), bytes: stored.bytes });
  };
  add(messageId(turn, 0), turnId(turn), "input", turn.input, false);
  for (const { item, text } of turn.replies) {
    const id = messageId(turn, item);
    add(id, id, "text", text, false);
  }
  for (const { item, result } of turn.operations) {
    const id = operationId(turn, item);
    if (result?.success) add(id, id, "result.result", result.result, true);
    else add(id, id, "result.error", result?.error, true);
  }
  return contents;
}

function droppedKeys({ texts }: StoredParts, isKept: (id: string, member: string) => boolean): string[] {
  const members = [...texts].flatMap(([id, stored]) => [...stored.keys()].map((member) => ({ id, member })));
  const dropped = members.filter(({ id, member }) => !isKept(id, member));
  return dropped.map(({ id, member }) => memberKey(id, member));
}

/** Returns the members of a row's body without its lists. Omits defaults: no recoveries, and a snapshot at the first entry. */
function ownMembers(turn: Omit<Partial<Turn>, "issues"> & Pick<Turn, "issues">): object {
  const { n: _n, status: _status, replies: _replies, operations: _operations, calls: _calls, ...rest } = turn;
  const { recoveries, snapshotSeq, issues: _issues, ...members } = rest;
  return {
    ...members,
    ...(recoveries === 0 ? {} : { recoveries }),
    ...(snapshotSeq === turn.firstSeq ? {} : { snapshotSeq }),
    ...issuesOf(turn),
  };
}

/** Returns a row's body. Its lists are arrays while no part holds elements of them. */
function bodyOf(head: PackedMembers, parts: readonly number[], lists: PackedLists): string {
  if (parts.length > 0) return JSON.stringify({ ...head, $parts: parts, ...lists });
  const whole = Object.entries(lists).map(([list, elements]) => [list, Object.values(elements)]);
  return JSON.stringify({ ...head, ...Object.fromEntries(whole) });
}

/** Returns an element without the members that have their usual value. */
function shortForm(turn: Turn, list: ListName, index: number): object {
  const operation = list === "operations" ? turn.operations[index] : undefined;
  if (operation !== undefined) return packOperation(operation, turn.replies[operation.reply]?.at);
  return turn[list]?.[index] ?? {};
}

function callOf({ calls = [], createdAt }: Turn, index: number): PackedCall {
  const call = calls[index];
  if (call === undefined) throw new RangeError(`The turn has no call ${index}.`);
  return packCall(call, createdAt);
}
