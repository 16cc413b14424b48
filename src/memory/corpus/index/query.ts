/** The memories that a search may show, by place. */
import type { KnownSpeakers } from "../../ranking/analyze-query.ts";
import { type MemoryColumns, NONE } from "../../ranking/columns.ts";
import { NO_NAME } from "../../ranking/names.ts";
import type { IndexQuery } from "../memory-index.ts";

type IndexFilter = IndexQuery["filter"];

type RestrictedReader = Exclude<IndexQuery["visible"], "all">;

export function seesAll(
  reader: IndexQuery["visible"],
): reader is "all" | (RestrictedReader & { scope: "agent" }) {
  return reader === "all" || ("scope" in reader && reader.scope === "agent");
}

/** Returns 1 for each place that the reader sees, or `undefined` if the reader sees all. */
export function visiblePlaces(columns: MemoryColumns, reader: IndexQuery["visible"]): Uint8Array | undefined {
  if (seesAll(reader)) return undefined;
  const { user, conversation } = columns;
  if ("owner" in reader) {
    const owner = numberOf(columns.users, reader.owner);
    return marked(columns, (place) => owner !== NO_NAME && user[place] === owner);
  }
  const isUser = reader.scope === "user";
  const own = isUser
    ? numberOf(columns.users, reader.userId)
    : numberOf(columns.conversations, reader.conversationId);
  const column = isUser ? user : conversation;
  return marked(columns, (place) => {
    const hasNoSubject = user[place] === NO_NAME && conversation[place] === NO_NAME;
    return hasNoSubject || (own !== NO_NAME && column[place] === own);
  });
}

/** Returns the speakers of the visible places, by the words of their names. The query does not recognise other speakers. */
export function visibleSpeakers(columns: MemoryColumns, visible: Uint8Array): KnownSpeakers {
  const visibleNumbers = new Set<number>();
  for (let place = 0; place < columns.size; place++)
    if (visible[place] === 1) visibleNumbers.add(columns.speaker[place] ?? NO_NAME);
  return {
    withWord: (word) => {
      const numbers = [...(columns.speakers.withWord(word) ?? [])].filter((number) =>
        visibleNumbers.has(number),
      );
      return numbers.length === 0 ? undefined : new Set(numbers);
    },
  };
}

/** Returns 1 for each place that the filter keeps, or `undefined` if it keeps all. */
export function allowedPlaces(
  columns: MemoryColumns,
  { types, speaker, session, from, before, userId, conversationId }: IndexFilter,
  allowed?: ReadonlySet<number>,
): Uint8Array | undefined {
  const checks: ((place: number) => boolean)[] = [];
  const equal = (column: Int32Array, names: Names, name: string | undefined) => {
    if (name === undefined) return;
    const number = names.numberOf(name);
    checks.push((place) => number !== NO_NAME && column[place] === number);
  };
  if (types !== undefined) {
    const numbers = new Set(types.map((type) => columns.types.numberOf(type)));
    checks.push((place) => numbers.has(columns.type[place] ?? NO_NAME));
  }
  equal(columns.speaker, columns.speakers, speaker);
  equal(columns.session, columns.sessions, session);
  equal(columns.user, columns.users, userId);
  equal(columns.conversation, columns.conversations, conversationId);
  if (from !== undefined) checks.push((place) => (columns.time[place] ?? 0) >= from);
  if (before !== undefined) checks.push((place) => (columns.time[place] ?? 0) < before);
  if (allowed !== undefined) checks.push((place) => allowed.has(columns.n[place] ?? NONE));
  if (checks.length === 0) return undefined;
  return marked(columns, (place) => checks.every((check) => check(place)));
}

type Names = Pick<MemoryColumns["types"], "numberOf">;

function numberOf(names: Names, name: string | undefined): number {
  return name === undefined ? NO_NAME : names.numberOf(name);
}

function marked(columns: MemoryColumns, isKept: (place: number) => boolean): Uint8Array {
  const places = new Uint8Array(columns.size);
  for (let place = 0; place < columns.size; place++)
    if (columns.n[place] !== NONE && isKept(place)) places[place] = 1;
  return places;
}
