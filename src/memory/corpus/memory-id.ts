/**
 * Ids of memories: `mem_`, nineteen characters of a ULID, and seven that encode the number of the memory in its agent.
 *
 * MEMID-1  An id resolves to its row without an index. It is valid only if the row has the same id. So a forged id, or the id of another
 *          agent's memory, is not found.
 */
import { stemOf } from "../../protocol/ids.ts";

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ID = /^mem_[0-9A-HJKMNP-TV-Z]{19}([0-9A-HJKMNP-TV-Z]{7})$/;

export function memoryId(ulid: string, n: number): string {
  let code = "";
  for (let rest = n; code.length < 7; rest = Math.floor(rest / 32)) code = ALPHABET.charAt(rest % 32) + code;
  return `mem_${stemOf(ulid)}${code}`;
}

export function numberOf(id: string): number | null {
  const code = ID.exec(id)?.[1];
  if (code === undefined) return null;
  return [...code].reduce((number, character) => number * 32 + ALPHABET.indexOf(character), 0);
}

export function isMemoryId(text: string): boolean {
  return ID.test(text);
}
