/**
 * Replaces large members of a turn, a reply or an operation by references to separate texts, and restores them. Pure.
 *
 * MEMBER-1  `unpackMembers` returns exactly the object that was passed to `packMembers`.
 * MEMBER-2  An unchanged stored member is not measured or written again.
 */
import type { TextReference } from "../../../memory/session/long-text.ts";
import { utf8Length } from "../../../shared/utf8.ts";
import type { StoredMember } from "../core/state.ts";

/** Members that summaries of turns show. They always stay in the row. */
const SUMMARISED = new Set(["error"]);
/** Members that are stored as plain text, because the session's events have the same content. */
const PLAIN_TEXT = new Set(["input", "text"]);

/** An object without its large members. `$texts` has the sizes of members in plain text, `$json` the sizes of the others. */
export interface PackedMembers {
  [member: string]: unknown;
  $texts?: Record<string, number>;
  $json?: Record<string, number>;
}

export type StoredMembers = ReadonlyMap<string, StoredMember>;

/** The texts that a pack adds to the store, by key. */
export type NewTexts = Map<string, string>;

export function memberKey(id: string, member: string): string {
  return `${id}:${member}`;
}

/**
 * Packs an object. Members above `limit` bytes are left out, and added to `texts` unless `before` has them. The keys contain the object's
 * `id`.
 */
export function packMembers(
  owner: object,
  { id, limit, before }: { id: string; limit: number; before: StoredMembers | undefined },
  texts: NewTexts,
): { packed: PackedMembers; stored: StoredMembers } {
  const stored = new Map<string, StoredMember>();
  const sizes: Required<Pick<PackedMembers, "$texts" | "$json">> = { $texts: {}, $json: {} };
  const keep = (name: string, value: unknown): boolean => {
    const member = known(before?.get(name), value) ?? measured(name, value);
    if (member === undefined) return true;
    stored.set(name, member);
    (member.isJson ? sizes.$json : sizes.$texts)[name] = member.bytes;
    return false;
  };
  /** Writes a large member as a separate text and returns it; `undefined` for a small member. */
  const measured = (name: string, value: unknown): StoredMember | undefined => {
    const isJson = !(PLAIN_TEXT.has(name) && typeof value === "string" && value.isWellFormed());
    const text = largeText(value, isJson, limit);
    if (text === undefined) return undefined;
    texts.set(memberKey(id, name), text);
    return { value, bytes: utf8Length(text), isJson };
  };
  const packed: PackedMembers = {};
  for (const [name, value] of Object.entries(owner)) {
    if (SUMMARISED.has(name)) packed[name] = value;
    else if (name === "result") packed[name] = withoutLarge(value, keep);
    else if (keep(name, value)) packed[name] = value;
  }
  for (const list of ["$texts", "$json"] as const)
    if (Object.keys(sizes[list]).length > 0) packed[list] = sizes[list];
  return { packed, stored };
}

export function referencesOf(packed: PackedMembers, id: string): TextReference[] {
  return Object.entries({ ...packed.$texts, ...packed.$json }).map(([member, bytes]) => ({
    key: memberKey(id, member),
    bytes,
  }));
}

/** Restores an object from its packed form and the texts by key. */
export function unpackMembers(
  { $texts = {}, $json = {}, ...inline }: PackedMembers,
  id: string,
  texts: ReadonlyMap<string, string>,
): { owner: Record<string, unknown>; stored: StoredMembers } {
  const stored = new Map<string, StoredMember>();
  const owner: Record<string, unknown> = { ...inline };
  const restore = (sizes: Record<string, number>, isJson: boolean) => {
    for (const [name, bytes] of Object.entries(sizes)) {
      const text = texts.get(memberKey(id, name)) ?? "";
      const value: unknown = isJson ? JSON.parse(text) : text;
      stored.set(name, { value, bytes, isJson });
      const [outer = name, inner] = name.split(".");
      owner[outer] = inner === undefined ? value : { ...Object(owner[outer]), [inner]: value };
    }
  };
  restore($texts, false);
  restore($json, true);
  return { owner, stored };
}

function known(member: StoredMember | undefined, value: unknown): StoredMember | undefined {
  return member !== undefined && member.value === value ? member : undefined;
}

/** Returns an operation's result without its large members. The result's event contains them. */
function withoutLarge(result: unknown, keep: (name: string, value: unknown) => boolean): unknown {
  if (typeof result !== "object" || result === null) return result;
  return Object.fromEntries(Object.entries(result).filter(([name, value]) => keep(`result.${name}`, value)));
}

/** Returns a value's text if it is larger than `limit` bytes; `undefined` otherwise. */
function largeText(value: unknown, isJson: boolean, limit: number): string | undefined {
  const isMeasured = typeof value === "string" || (typeof value === "object" && value !== null);
  if (!isMeasured) return undefined;
  // Escapes make a text at most six times as long, and UTF-8 a unit at most three bytes.
  if (typeof value === "string" && value.length * 6 + 2 <= limit) return undefined;
  const text = isJson ? JSON.stringify(value) : String(value);
  if (text.length * 3 <= limit) return undefined;
  return utf8Length(text) > limit ? text : undefined;
}
