/** Excerpts of texts, for notes to a model. Pure. */

import { cut } from "../../../../shared/text.ts";
import { MAX_NOTED_LENGTH } from "../conversation-limits.ts";

/** Returns the beginning of a text, with `…` where it was cut. */
export function excerpt(text: string, length = MAX_NOTED_LENGTH): string {
  return text.length <= length ? text : `${cut(text, length)}…`;
}
