/**
 * Ids of turns, messages and operations. The first nineteen characters after the prefix, the stem, are of one ULID per
 * turn: its time and its last nine; the last seven encode the turn's number and the item's index in it.
 *
 * ID-1  An id resolves to its turn without an index, and is genuine only if its stem equals the stored one.
 * ID-2  Turns that begin within one millisecond have different stems, also in two conversations: what a tool hands on as
 *       an idempotency key must not mean two calls.
 */

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const TIME_LENGTH = 10;
const RANDOM_LENGTH = 9;
const CODE_LENGTH = 7;
const ITEMS_PER_TURN = 8192;

/** Turn numbers end here: seven characters hold 35 bits, thirteen of them for the item. */
export const MAX_TURN_NUMBER = 2 ** 22 - 1;
/** Items (messages and operations) of one turn end here. */
export const MAX_ITEM_INDEX = ITEMS_PER_TURN - 1;

export type ItemPrefix = "turn" | "msg" | "op";

/** Where an id points. */
export interface ItemAddress {
  prefix: ItemPrefix;
  stem: string;
  turn: number;
  item: number;
}

/** The stem shared by all ids of a turn. ULIDs made within one millisecond ascend, so only their ends differ. */
export function stemOf(ulid: string): string {
  return ulid.slice(0, TIME_LENGTH) + ulid.slice(-RANDOM_LENGTH);
}

export function turnId(stem: string, turn: number): string {
  return `turn_${stem}${encode(turn, 0)}`;
}

export function messageId(stem: string, turn: number, item: number): string {
  return `msg_${stem}${encode(turn, item)}`;
}

/** The id of a turn's model call, by its index among them. */
export function callId(stem: string, turn: number, index: number): string {
  return `call_${stem}${encode(turn, index)}`;
}

export function operationId(stem: string, turn: number, item: number): string {
  return `op_${stem}${encode(turn, item)}`;
}

const ID_SHAPE = /^(turn|msg|op)_([0-9A-HJKMNP-TV-Z]{19})([0-9A-HJKMNP-TV-Z]{7})$/;

/** The address in an id, or `null` for text that is not one. */
export function parseItemId(id: string): ItemAddress | null {
  const match = ID_SHAPE.exec(id);
  if (match === null) return null;
  const [, prefix, stem = "", code = ""] = match;
  let value = 0;
  for (const character of code) value = value * 32 + ALPHABET.indexOf(character);
  return {
    prefix: prefix === "turn" || prefix === "msg" ? prefix : "op",
    stem,
    turn: Math.floor(value / ITEMS_PER_TURN),
    item: value % ITEMS_PER_TURN,
  };
}

function encode(turn: number, item: number): string {
  let value = turn * ITEMS_PER_TURN + item;
  let code = "";
  for (let position = 0; position < CODE_LENGTH; position++) {
    code = ALPHABET.charAt(value % 32) + code;
    value = Math.floor(value / 32);
  }
  return code;
}
