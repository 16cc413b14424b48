/**
 * Ids of calls as a provider takes them. They come from any provider, so they may be of any shape, and they may repeat
 * from reply to reply. Pure.
 */
import { fingerprint } from "../../../shared/text.ts";

/** An id of letters, digits, `_` and `-`; one that had to be changed ends with a fingerprint of what it was. */
function plainId(id: string, limit: number): string {
  const plain = id.replace(/[^A-Za-z0-9_-]/gu, "_");
  const fits = plain === id && id !== "" && id.length <= limit;
  return fits ? id : `${plain.slice(0, limit - 9)}_${fingerprint(id)}`;
}

const LONGEST_ID = 56;

/** The ids of a request's calls, each once: a call whose id is taken gets a number behind it, its result the same. */
export class CallIds {
  readonly #used: Set<string>;
  readonly #sent = new Map<string, string>();
  readonly #longest: number;

  /** `used`: the ids that the request has already, in order. `longest`: characters of an id, without such a number. */
  constructor(used: Iterable<string> = [], longest = LONGEST_ID) {
    this.#used = new Set(used);
    this.#longest = longest;
  }

  /** The id to send for a call. */
  ofCall(id: string): string {
    const plain = plainId(id, this.#longest);
    let unused = plain;
    for (let n = 2; this.#used.has(unused); n++) unused = `${plain}_${n}`;
    this.#used.add(unused);
    this.#sent.set(id, unused);
    return unused;
  }

  /** The id to send with the result of the newest call of that id. */
  ofResult(id: string): string {
    const sent = this.#sent.get(id);
    if (sent !== undefined) return sent;
    const plain = plainId(id, this.#longest);
    const numbered = new RegExp(`^${plain}(?:_\\d+)?$`);
    return [...this.#used].findLast((used) => numbered.test(used)) ?? plain;
  }
}
