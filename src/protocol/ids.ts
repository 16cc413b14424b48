/**
 * Ids of turns, messages, operations and calls. After the prefix follow the turn's stem and a code. The stem is 19
 * characters of the turn's ULID: its time and its last nine characters. The code is seven characters that encode the
 * turn's number and the index of the item in the turn.
 *
 * ID-1  An id resolves to its turn without an index, and is genuine only if its stem equals the stored stem.
 * ID-2  Turns that begin within one millisecond have different stems, even in different conversations. Two calls
 *       never share an operation id, because tools use it as their idempotency key.
 */
import { inJurisdiction, type Jurisdiction } from "../shared/location.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_LENGTH = 10;
const RANDOM_LENGTH = 9;
const CODE_LENGTH = 7;
const ITEMS_PER_TURN = 8192;

/** The highest number of a turn: seven characters hold 35 bits, 13 of them for the item. */
export const MAX_TURN_NUMBER = 2 ** 22 - 1;
/** The highest index of an item (a message or an operation) in a turn. */
export const MAX_ITEM_INDEX = ITEMS_PER_TURN - 1;

/** The members of a turn that its ids are made of. */
export interface TurnKey {
  readonly stem: string;
  readonly n: number;
}

/** An id, decoded. */
export interface ItemAddress extends TurnKey {
  readonly prefix: "turn" | "msg" | "op";
  readonly item: number;
}

/** Returns the stem of a ULID. ULIDs made within one millisecond ascend, so only their last characters differ. */
export function stemOf(ulid: string): string {
  return ulid.slice(0, TIME_LENGTH) + ulid.slice(-RANDOM_LENGTH);
}

/** Returns 26 characters, as a ULID has them, from the hexadecimal digits of a hash: for an id that depends only on its key. */
export function charactersOf(hash: string): string {
  const digitAt = (index: number) => Number.parseInt(hash.slice(2 * index, 2 * index + 2), 16) % 32;
  return Array.from({ length: 26 }, (_, index) => ALPHABET.charAt(digitAt(index))).join("");
}

/** Returns 20 hexadecimal digits of a stem, from its last 16 characters: they differ wherever two stems of one day do. */
export function stemDigits(stem: string): string {
  let value = 0n;
  for (const character of stem.slice(-16)) value = value * 32n + BigInt(ALPHABET.indexOf(character));
  return value.toString(16).padStart(20, "0");
}

export function turnId(turn: TurnKey): string {
  return `turn_${encode(turn, 0)}`;
}

export function messageId(turn: TurnKey, item: number): string {
  return `msg_${encode(turn, item)}`;
}

export function operationId(turn: TurnKey, item: number): string {
  return `op_${encode(turn, item)}`;
}

/** Returns the id of a turn's model call; `index` is its place among the turn's calls. */
export function callId(turn: TurnKey, index: number): string {
  return `call_${encode(turn, index)}`;
}

/** Returns the id of the call for the summary, or for the title, that a turn's end began. */
export function sideCallId(turn: TurnKey, { title }: { title?: true } = {}): string {
  return `${title ? "title" : "summary"}_${encode(turn, 0)}`;
}

const ID_SHAPE = /^(turn|msg|op)_([0-9A-HJKMNP-TV-Z]{19})([0-9A-HJKMNP-TV-Z]{7})$/;

/** Decodes an id; returns `null` for other text. */
export function parseItemId(id: string): ItemAddress | null {
  const match = ID_SHAPE.exec(id);
  if (match === null) return null;
  const [, prefix, stem = "", code = ""] = match;
  const value = decode(code);
  return {
    prefix: prefix === "turn" || prefix === "msg" ? prefix : "op",
    stem,
    n: Math.floor(value / ITEMS_PER_TURN),
    item: value % ITEMS_PER_TURN,
  };
}

/** Resolves an id of one kind. Returns `null` for other text, an unknown turn, and an id that is not genuine (ID-1). */
export function resolveId<Turn extends TurnKey>(
  id: string,
  prefix: ItemAddress["prefix"],
  turnOf: (n: number) => Turn | null,
): { turn: Turn; item: number } | null {
  const address = parseItemId(id);
  const turn = address?.prefix === prefix ? turnOf(address.n) : null;
  return turn !== null && address?.stem === turn.stem ? { turn, item: address.item } : null;
}

/**
 * Returns the id of the conversation that an attempt of an operation opens: the operation's own characters, with the attempts
 * before it added to the time. It is in the jurisdiction of its caller.
 */
export function calledConversationId(
  operation: string,
  attempt: number,
  jurisdiction?: Jurisdiction,
): string {
  return inJurisdiction(`conv_${attemptCharacters(operation, attempt)}`, jurisdiction);
}

/** Returns the id of the run that an attempt of an operation starts, as `calledConversationId` does. */
export function calledRunId(operation: string, attempt: number, jurisdiction?: Jurisdiction): string {
  return inJurisdiction(`run_${attemptCharacters(operation, attempt)}`, jurisdiction);
}

/** Returns the id of the attachment with the whole result of an attempt, as `calledConversationId` does. */
export function resultAttachmentId(operation: string, attempt: number): string {
  return `att_${attemptCharacters(operation, attempt)}`;
}

function attemptCharacters(operation: string, attempt: number): string {
  const characters = operation.slice(operation.indexOf("_") + 1);
  const time = decode(characters.slice(0, TIME_LENGTH)) + attempt - 1;
  return digits(time, TIME_LENGTH) + characters.slice(TIME_LENGTH);
}

function encode({ stem, n }: TurnKey, item: number): string {
  return stem + digits(n * ITEMS_PER_TURN + item, CODE_LENGTH);
}

function digits(value: number, length: number): string {
  let code = "";
  for (let rest = value; code.length < length; rest = Math.floor(rest / 32))
    code = ALPHABET.charAt(rest % 32) + code;
  return code;
}

function decode(code: string): number {
  let value = 0;
  for (const character of code) value = value * 32 + ALPHABET.indexOf(character);
  return value;
}
