/** Computes the similarity of vectors to a query. */
import { type QuantizedVector, quantize } from "./entry.ts";
import type { LoadedSpace } from "./loaded-space.ts";

/** The quantized vector of a query, with the factor for dot products. */
export interface QueryVector extends QuantizedVector {
  exact: Float32Array;
}

export function queryVector(exact: Float32Array): QueryVector {
  return { ...quantize(exact), exact };
}

/** Returns the cosine of the vector in `values` that begins at `from`. */
export function cosine(
  { values: query, scale: ofQuery }: QueryVector,
  values: Int8Array,
  from: number,
  scale: number,
): number {
  const { length } = query;
  let sum = 0;
  for (let index = 0; index < length; index++)
    sum = (sum + Math.imul(query[index] ?? 0, values[from + index] ?? 0)) | 0;
  return sum * ofQuery * scale;
}

/** Writes the cosine of each memory to `into`, by place. The space must have its vectors. Four at a time halve the duration. */
export function compareAll(query: QueryVector, { scales, vectors }: LoadedSpace, into: Float32Array): void {
  if (vectors === null) return;
  const { values, scale: ofQuery } = query;
  const { length } = values;
  const set = (place: number, sum: number) => {
    const scale = scales[place] ?? 0;
    if (scale > 0) into[place] = sum * ofQuery * scale;
  };
  let place = 0;
  for (; place + 3 < into.length; place += 4) {
    const [first, second] = [place * length, (place + 1) * length];
    const [third, fourth] = [(place + 2) * length, (place + 3) * length];
    let a = 0;
    let b = 0;
    let c = 0;
    let d = 0;
    for (let index = 0; index < length; index++) {
      const factor = values[index] ?? 0;
      a = (a + Math.imul(factor, vectors[first + index] ?? 0)) | 0;
      b = (b + Math.imul(factor, vectors[second + index] ?? 0)) | 0;
      c = (c + Math.imul(factor, vectors[third + index] ?? 0)) | 0;
      d = (d + Math.imul(factor, vectors[fourth + index] ?? 0)) | 0;
    }
    set(place, a);
    set(place + 1, b);
    set(place + 2, c);
    set(place + 3, d);
  }
  for (; place < into.length; place++) {
    const scale = scales[place] ?? 0;
    if (scale > 0) into[place] = cosine(query, vectors, place * length, scale);
  }
}
