/** The requirements of a budget on its models: prices, and room for one call. */
import { amountsOf, isPriced, maxOutputTokens } from "../../model/spending.ts";
import { AMOUNT, amountOf, type Budget, inUnits } from "../../protocol/budget.ts";
import type { VersionChain } from "../../protocol/definitions.ts";
import { invalidAt } from "../../shared/validation.ts";
import { modelsOf } from "../tasks/pin.ts";

/** Throws `INVALID_INPUT` for a budget in dollars if a model that may be called has no price. */
export function checkPrices(
  {
    modelProfile,
    fallbacks = [],
    compactionProfile = modelProfile,
    titleProfile = modelProfile,
    tools,
    contextAssembly,
    memoryExtraction,
  }: VersionChain,
  { usd }: Budget,
  place = "",
): void {
  if (usd === undefined) return;
  const tasks = [...tools, contextAssembly, memoryExtraction].flatMap((part) => part?.task ?? []);
  const models = [
    ...[modelProfile, ...fallbacks, compactionProfile, titleProfile].map(({ definition }) => definition),
    ...tasks.flatMap(modelsOf),
  ];
  const unpriced = models.find((profile) => !isPriced(profile));
  if (unpriced === undefined) return;
  const path = "/budget/usd";
  const message = `The model ${unpriced.provider}/${unpriced.modelId} has no price: set \`costPer1kInput\` and \`costPer1kOutput\` in its profile, or limit \`tokens\` instead.`;
  throw invalidAt(path, message, `${place}${path}: ${message}`);
}

/**
 * Throws `INVALID_INPUT` for a budget that is smaller than the longest reply of the model: no call would ever fit, because each
 * reserves that, and its input.
 */
export function checkRoom({ modelProfile: { definition: profile } }: VersionChain, budget: Budget): void {
  const reply = amountsOf({ inputTokens: 0, outputTokens: maxOutputTokens(profile) }, profile);
  for (const limit of ["tokens", "usd"] as const) {
    const allowed = budget[limit];
    if (allowed === undefined || amountOf(allowed, limit) > reply[AMOUNT[limit]]) continue;
    const path = `/budget/${limit}`;
    const needed = inUnits(reply[AMOUNT[limit]], limit);
    const message = `The limit is too low for a model call. Each call reserves its longest reply, here ${needed} ${limit === "usd" ? "US dollars" : "tokens"}, and its input. Allow more, or limit the length of replies in the model profile.`;
    throw invalidAt(path, message, `${path}: ${message}`);
  }
}
