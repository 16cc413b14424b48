/** Names and ids in the form that providers accept, the same wherever they occur in a request. Pure. */
import type { ContextMessage, ToolCall } from "../../../model/messages.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { cut, fingerprint } from "../../../shared/text.ts";

/** Length of a name that every provider accepts. */
export const NAME_LENGTH = 64;

/** Replaces all characters but letters, digits, `_` and `-`, and cuts the name to `limit` characters. */
export function plainName(name: string, limit = NAME_LENGTH): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, limit) || "unnamed";
}

/** Cuts a text to `limit` characters; a text that was cut ends with a fingerprint of the whole. */
export function fitLength(text: string, limit: number): string {
  return text.length <= limit ? text : `${cut(text, limit - 9)}_${fingerprint(text)}`;
}

/** Leaves room for a number behind the id: the strictest providers accept ids of 64 characters. */
export const ID_LENGTH = 56;

/** The id and the name of a call as they are sent. */
export interface SentCall {
  id: string;
  name: string;
}

/** The calls of the requests that were made in this process. Their ids cannot be read from the requests. */
const CARRIED = new WeakMap<JsonObject, SentCalls>();

export function carryCalls(request: JsonObject, copy: JsonObject): JsonObject {
  const calls = CARRIED.get(request);
  return calls === undefined ? copy : calls.carriedBy(copy);
}

export interface CallForm {
  toName(name: string): string;
  idLength: number;
  /** The characters that an id cannot have. Default: all but letters, digits, `_` and `-`. */
  notInId?: RegExp;
  callsIn(request: JsonObject): SentCall[];
}

/**
 * The calls of a request. Calls come from any provider, so their ids may have any shape and may repeat from reply to
 * reply. In the request, each id is unique and has only characters that the format takes.
 */
export class SentCalls {
  /** Names by sent id, in order. */
  readonly #names: Map<string, string>;
  /** The newest sent ids, by original id. */
  readonly #ids: Map<string, string>;
  readonly #form: CallForm;

  /**
   * Begins with the calls in `request`. A copied or foreign request has no original ids. Then a result answers its newest call with a sent
   * id from the same text.
   */
  constructor(form: CallForm, request?: JsonObject) {
    const carried = request && CARRIED.get(request);
    const earlier = request === undefined || carried ? [] : form.callsIn(request);
    this.#form = form;
    this.#names = new Map(carried ? carried.#names : earlier.map(({ id, name }) => [id, name]));
    this.#ids = new Map(carried ? carried.#ids : []);
  }

  /** Remembers the calls of a finished request for its extensions; returns the request. */
  carriedBy(request: JsonObject): JsonObject {
    CARRIED.set(request, this);
    return request;
  }

  add(call: Pick<ToolCall, "id" | "name">): SentCall {
    const plain = this.#plainId(call.id);
    let id = plain;
    for (let n = 2; this.#names.has(id); n++) id = `${plain}_${n}`;
    const name = this.#form.toName(call.name);
    this.#names.set(id, name);
    this.#ids.set(call.id, id);
    return { id, name };
  }

  /** Finds the newest call that a tool's message answers. */
  answeredBy({ toolCallId = "", name = "" }: ContextMessage): SentCall {
    const id = this.#ids.get(toolCallId) ?? this.#newestLike(this.#plainId(toolCallId));
    return { id, name: this.#names.get(id) ?? this.#form.toName(name) };
  }

  /** Returns the place of the call that a tool's message answers among all calls of the request; -1 without a call. */
  placeOf(message: ContextMessage): number {
    return [...this.#names.keys()].indexOf(this.answeredBy(message).id);
  }

  /** Searches the calls without an original id. */
  #newestLike(plain: string): string {
    const known = new Set(this.#ids.values());
    const isLike = (id: string) => id.startsWith(plain) && /^(?:_\d+)?$/.test(id.slice(plain.length));
    return [...this.#names.keys()].findLast((id) => !known.has(id) && isLike(id)) ?? plain;
  }

  /** An id that had to be changed ends with a fingerprint of the original. */
  #plainId(id: string): string {
    const { idLength, notInId = /[^A-Za-z0-9_-]/gu } = this.#form;
    const plain = id.replace(notInId, "_");
    const fits = plain === id && id !== "" && id.length <= idLength;
    return fits ? id : `${plain.slice(0, idLength - 9)}_${fingerprint(id)}`;
  }
}
