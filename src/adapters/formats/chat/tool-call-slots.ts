/**
 * Sorts the tool-call fragments of a chat stream into calls. Servers differ: some send an index with every fragment, some send whole calls
 * without an index. Some give every call index 0, some repeat id and name with each fragment.
 *
 * SLOT-1  Calls are numbered 0, 1, 2 … in the order in which they begin, regardless of the server's own indices.
 * SLOT-2  The id and the name of a call are reported once each, as soon as they are known.
 */
import type { ModelDelta } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import { type JsonObject, parseJson } from "../../../shared/json.ts";

export interface ToolCallFragment {
  index: number | null | undefined;
  id: string | null | undefined;
  name: string | null | undefined;
  /** A fragment of JSON text, or empty. */
  arguments: string;
  /** Additional members that must be sent back to the server with the call. */
  extra: JsonObject | undefined;
}

interface Slot {
  id?: string;
  name?: string;
  arguments: string;
  extra?: JsonObject;
}

export class ToolCallSlots {
  readonly #slots: Slot[] = [];
  readonly #byServerIndex = new Map<number, Slot>();

  get size(): number {
    return this.#slots.length;
  }

  get extras(): (JsonObject | undefined)[] {
    return this.#slots.map(({ extra }) => extra);
  }

  add(fragments: readonly ToolCallFragment[]): ModelDelta[] {
    const touched = new Set<Slot>();
    return fragments.flatMap((fragment) => {
      const known = this.#find(fragment);
      if (!fragment.id && !fragment.name && !fragment.arguments) {
        if (known !== undefined) addExtra(known, fragment);
        return [];
      }
      const slot = known !== undefined && continues(known, fragment, touched) ? known : this.#open(fragment);
      touched.add(slot);
      return [this.#fill(slot, fragment)];
    });
  }

  #find({ index, id }: ToolCallFragment): Slot | undefined {
    if (typeof index === "number") return this.#byServerIndex.get(index);
    return (id && this.#slots.find((slot) => slot.id === id)) || this.#slots.at(-1);
  }

  #open({ index }: ToolCallFragment): Slot {
    const slot: Slot = { arguments: "" };
    this.#slots.push(slot);
    if (typeof index === "number") this.#byServerIndex.set(index, slot);
    return slot;
  }

  #fill(slot: Slot, fragment: ToolCallFragment): ModelDelta {
    const id = slot.id === undefined && fragment.id ? fragment.id : undefined;
    const name = slot.name === undefined && fragment.name ? fragment.name : undefined;
    if (id !== undefined) slot.id = id;
    if (name !== undefined) slot.name = name;
    slot.arguments += fragment.arguments;
    addExtra(slot, fragment);
    return {
      type: "tool-call",
      index: this.#slots.indexOf(slot),
      ...defined({ id, name, arguments: fragment.arguments || undefined }),
    };
  }
}

function addExtra(slot: Slot, { extra }: ToolCallFragment): void {
  if (extra !== undefined) slot.extra = { ...slot.extra, ...extra };
}

/** Reports whether a fragment belongs to the call at its place, or begins another call there. */
function continues(slot: Slot, fragment: ToolCallFragment, touched: ReadonlySet<Slot>): boolean {
  if (fragment.id && slot.id !== undefined) return fragment.id === slot.id;
  if (!fragment.name || slot.name === undefined) return true;
  if (typeof fragment.index !== "number" || touched.has(slot) || fragment.name !== slot.name) return false;
  return fragment.arguments === "" || parseJson(slot.arguments) === undefined;
}
