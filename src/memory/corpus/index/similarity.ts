/** How near vectors are to that of a query. */
import { type QuantizedVector, quantize } from "./entry.ts";
import type { LoadedSpace } from "./loaded-space.ts";

/** The vector of a query, in whole numbers, with what a sum of products is multiplied with. */
export interface QueryVector extends QuantizedVector {
  exact: Float32Array;
}

/** Returns a query's vector as it is compared. */
export function queryVector(exact: Float32Array): QueryVector {
  return { ...quantize(exact), exact };
}

/** Returns the cosine of a vector among `values`, which begins at `from`. */
export function cosine(
  { values: query, scale: ofQuery }: QueryVector,
  values: Int8Array,
  from: number,
  scale: number,
): number {
  const { length } = query;
  let sum = 0;
  for (let index = 0; index < length; index++) sum += (query[index] ?? 0) * (values[from + index] ?? 0);
  return sum * ofQuery * scale;
}

/** Writes the cosine of each memory into `into`, by place. The space has its vectors. */
export function compareAll(query: QueryVector, { scales, vectors }: LoadedSpace, into: Float32Array): void {
  if (vectors === null) return;
  const { length } = query.values;
  for (let place = 0; place < into.length; place++) {
    const scale = scales[place] ?? 0;
    if (scale > 0) into[place] = cosine(query, vectors, place * length, scale);
  }
}
