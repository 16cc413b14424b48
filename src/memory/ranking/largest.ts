/** Selection of the largest values. Pure. */

const BINS = 1_024;

/**
 * Returns the indexes of at least `count` of the largest positive values (fewer if there are fewer), ascending. Accepts only one array
 * type, because engines optimise these loops for a single type.
 */
export function largest(values: Float64Array, count: number): number[] {
  let maximum = 0;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0;
    if (value > maximum) maximum = value;
  }
  if (maximum === 0) return [];
  const scale = BINS / maximum;
  const bins = new Int32Array(BINS + 1);
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0;
    if (value > 0) {
      const bin = Math.floor(value * scale);
      bins[bin] = (bins[bin] ?? 0) + 1;
    }
  }
  let [least, covered] = [BINS + 1, 0];
  while (covered < count && least > 0) covered += bins[--least] ?? 0;
  const indexes: number[] = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0;
    if (value > 0 && Math.floor(value * scale) >= least) indexes.push(index);
  }
  return indexes;
}
