/** Returns the pause after consecutive failures: none, then `first` milliseconds, then twice the pause before, at most `longest`. */
export function backoffMs(failures: number, first: number, longest: number): number {
  return failures < 1 ? 0 : Math.min(longest, first * 2 ** (failures - 1));
}
