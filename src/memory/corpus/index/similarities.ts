/** The similarities of all memories with a query. */
import type { LoadedSpace } from "./loaded-space.ts";
import { compareAll, cosine, type QueryVector } from "./similarity.ts";
import type { SpaceRows } from "./space-rows.ts";

/** The cosine of each place, and the scale of its vector. `NaN` if it has no vector yet. */
export interface Similarities {
  cosines: Float32Array;
  scales: Float32Array;
}

export function similarities(loaded: LoadedSpace, rows: SpaceRows, vector: QueryVector): Similarities {
  const cosines = new Float32Array(loaded.columns.size);
  if (loaded.vectors !== null) {
    compareAll(vector, loaded, cosines);
    return { cosines, scales: loaded.scales };
  }
  const scales = new Float32Array(loaded.columns.size).fill(Number.NaN);
  for (const { first, vectors } of rows.allVectors()) {
    loaded.eachVector(first, vectors, (at, place) => {
      const scale = vectors.scales[place] ?? 0;
      scales[at] = scale;
      if (scale > 0) cosines[at] = cosine(vector, vectors.values, place * vectors.dimensions, scale);
    });
  }
  return { cosines, scales };
}

/** Reports whether all memories that the reader sees have vectors. For a reader who sees all, the marks of the rows suffice. */
export function isComplete(
  rows: SpaceRows,
  compared: Similarities | undefined,
  visible: Uint8Array | undefined,
): boolean {
  if (visible === undefined) return rows.marks(1).length === 0;
  return visible.every((one, place) => one === 0 || !Number.isNaN(compared?.scales[place]));
}
