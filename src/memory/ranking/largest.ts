/** Selection of the largest values. Pure. */

const BINS = 1_024;

/** Returns the indexes of at least `count` of the largest values above 0, as far as there are so many; in ascending order. */
export function largest(values: ArrayLike<number>, count: number): number[] {
  let maximum = 0;
  for (let index = 0; index < values.length; index++) maximum = Math.max(maximum, values[index] ?? 0);
  if (maximum === 0) return [];
  const scale = BINS / maximum;
  const bins = new Int32Array(BINS + 1);
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0;
    if (value > 0) bins[Math.floor(value * scale)] = (bins[Math.floor(value * scale)] ?? 0) + 1;
  }
  let [bin, covered] = [BINS + 1, 0];
  while (covered < count && bin > 0) covered += bins[--bin] ?? 0;
  const indexes: number[] = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? 0;
    if (value > 0 && Math.floor(value * scale) >= bin) indexes.push(index);
  }
  return indexes;
}
