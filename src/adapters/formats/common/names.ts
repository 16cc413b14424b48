/** Names and ids in the form that providers accept, the same wherever they occur in a request. Pure. */
import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import { fingerprint } from "../../../shared/text.ts";

/** Length of a name that every provider accepts. */
export const NAME_LENGTH = 64;

/** Replaces all characters but letters, digits, `_` and `-`, and cuts the name to `limit` characters. */
export function plainName(name: string, limit = NAME_LENGTH): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, limit) || "unnamed";
}

/** Cuts a text to `limit` characters; a text that was cut ends with a fingerprint of the whole. */
export function fitLength(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 9).toWellFormed()}_${fingerprint(text)}`;
}

/** Leaves room for a number behind the id: the strictest providers accept ids of 64 characters. */
const ID_LENGTH = 56;

/** The id and the name under which a call is sent. */
export interface SentCall {
  id: string;
  name: string;
}

/**
 * The calls of a request. Calls come from any provider, so their ids may have any shape and may repeat from reply to
 * reply; in the request, each id is unique and has letters, digits, `_` and `-` only.
 */
export class SentCalls {
  /** Names by sent id, in order. */
  readonly #names: Map<string, string>;
  /** Sent ids by original id. */
  readonly #ids = new Map<string, string>();
  readonly #toName: (name: string) => string;
  readonly #idLength: number;

  /** `earlier` are the calls that the request already has. */
  constructor(
    earlier: readonly SentCall[],
    toName: (name: string) => string = plainName,
    idLength = ID_LENGTH,
  ) {
    this.#names = new Map(earlier.map(({ id, name }) => [id, name]));
    this.#toName = toName;
    this.#idLength = idLength;
  }

  /** Adds a call. */
  add(call: Pick<ToolCall, "id" | "name">): SentCall {
    const plain = this.#plainId(call.id);
    let id = plain;
    for (let n = 2; this.#names.has(id); n++) id = `${plain}_${n}`;
    const name = this.#toName(call.name);
    this.#names.set(id, name);
    this.#ids.set(call.id, id);
    return { id, name };
  }

  /** Finds the newest call that a tool's message answers. */
  answeredBy({ toolCallId = "", name = "" }: ContextMessage): SentCall {
    const id = this.#ids.get(toolCallId) ?? this.#newestLike(this.#plainId(toolCallId));
    return { id, name: this.#names.get(id) ?? this.#toName(name) };
  }

  #newestLike(plain: string): string {
    const numbered = new RegExp(`^${plain}(?:_\\d+)?$`);
    return [...this.#names.keys()].findLast((id) => numbered.test(id)) ?? plain;
  }

  /** An id that had to be changed ends with a fingerprint of the original. */
  #plainId(id: string): string {
    const plain = id.replace(/[^A-Za-z0-9_-]/gu, "_");
    const fits = plain === id && id !== "" && id.length <= this.#idLength;
    return fits ? id : `${plain.slice(0, this.#idLength - 9)}_${fingerprint(id)}`;
  }
}
