/** The prices that a budget in dollars requires. */
import { isPriced } from "../model/spending.ts";
import type { Budget } from "../protocol/budget.ts";
import type { VersionChain } from "../protocol/definitions.ts";
import { DramatisError } from "../shared/errors.ts";

/** Throws `INVALID_INPUT` for a budget in dollars where a model that may be called has no price. */
export function checkPrices(
  { modelProfile, fallbacks = [], compactionProfile = modelProfile }: VersionChain,
  { usd }: Budget,
  place = "",
): void {
  if (usd === undefined) return;
  const models = [modelProfile, ...fallbacks, compactionProfile].map(({ definition }) => definition);
  const unpriced = models.find((profile) => !isPriced(profile));
  if (unpriced === undefined) return;
  const path = "/budget/usd";
  const message = `The model ${unpriced.provider}/${unpriced.modelId} has no price: set \`costPer1kInput\` and \`costPer1kOutput\` in its profile, or limit \`tokens\` instead.`;
  throw new DramatisError("INVALID_INPUT", `${place}${path}: ${message}`, { errors: [{ path, message }] });
}
