/**
 * The vectors of an agent in a store of vectors: their namespace, and their deletion with the agent.
 *
 * MEMVECTORS-5  An agent of a tenant has a namespace of its own, whose name tells neither.
 * MEMVECTORS-6  With the agent all vectors go that the store may have of it, in pieces, each of which is noted.
 */
import { MAX_DELETED, type VectorIndex } from "../../../ports/vector-index.ts";
import { sha256Hex } from "../../../shared/sha256.ts";
import { idOf } from "./publication.ts";

/** The vectors that a store may have of an agent: of these spaces, and of memories with keys up to `last`. */
export interface PublishedVectors {
  spaces: number[];
  last: number;
}

/** Deletions of one piece. */
const REQUESTS = 20;

/** Returns the name of the namespace of an agent: 64 characters. */
export function vectorNamespace({ tenant, id }: { tenant: string; id: string }): Promise<string> {
  return sha256Hex(JSON.stringify(["memories", tenant, id]));
}

/**
 * Deletes a piece of an agent's vectors, from the place `from` on. Returns where the next one begins; `undefined` after the last. Rejects if the store does not
 * answer.
 */
export async function deleteVectors(
  index: VectorIndex,
  owner: { tenant: string; id: string },
  { spaces, last }: PublishedVectors,
  from = 0,
): Promise<number | undefined> {
  const namespace = await vectorNamespace(owner);
  const all = spaces.length * last;
  const to = Math.min(all, from + REQUESTS * MAX_DELETED);
  for (let at = from; at < to; at += MAX_DELETED) {
    const places = Array.from({ length: Math.min(MAX_DELETED, to - at) }, (_, n) => at + n);
    const ids = places.map((place) => idOf(spaces[Math.floor(place / last)] ?? 0, 1 + (place % last)));
    await index.delete(namespace, ids);
  }
  return to < all ? to : undefined;
}
