/** The input and the result of a consolidation call. Pure. */
import { hookInput } from "../../library/hooks/hook-inputs.ts";
import type { StoredMemory } from "../../memory/corpus/stored-memory.ts";
import { defined } from "../../shared/defined.ts";
import { invalid } from "../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import { toIso } from "../../shared/time.ts";

export interface ConsolidationCall {
  operationId: string;
  /** From 1. */
  attempt: number;
  input: JsonObject;
}

/** Returns the input of a call. `texts` has the texts of the memories, in order. */
export function consolidationInput(members: readonly StoredMemory[], texts: readonly string[]): JsonObject {
  const [first] = members;
  return hookInput("consolidation", {
    memories: members.map(({ id, type, significance, speaker, time, validFrom, version }, index) => ({
      ...{ id, version, type, significance, content: texts[index] ?? "", validFrom: toIso(validFrom) },
      ...defined({ speaker: speaker ?? undefined, time: time === null ? undefined : toIso(time) }),
    })),
    type: first?.type ?? "",
    subject: defined({
      userId: first?.userId ?? undefined,
      conversationId: first?.conversationId ?? undefined,
    }),
  });
}

/** Returns the operations in a result: an object with `operations`, or a list. Throws `INVALID_INPUT`. */
export function operationsOf(result: Json): readonly Json[] {
  const given = isJsonObject(result) ? (result.operations ?? []) : (result ?? []);
  if (Array.isArray(given)) return given;
  throw invalid("A consolidation must return a list of memory operations.");
}
