/**
 * Correlation: the id that everything has in common which follows from one signal. Pure.
 *
 * CORR-1  A correlation id that came with the signal is kept. Otherwise it is `corr-` and 20 hexadecimal digits that derive from
 *         the turn, so no row has to hold it.
 */
import { stemDigits } from "../../../protocol/ids.ts";

export interface CorrelatedTurn {
  readonly stem: string;
  /** As supplied with its message; otherwise absent. */
  readonly correlationId?: string;
}

export function correlationOf({ stem, correlationId }: CorrelatedTurn): string {
  return correlationId ?? newCorrelation(stem);
}

export function newCorrelation(stem: string): string {
  return `corr-${stemDigits(stem)}`;
}
