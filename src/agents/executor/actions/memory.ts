/**
 * The actions on memory.
 *
 * MEMACT-1  An action reaches only the memory of the agent in its execution context, within the scope of its conversation. An agent in the
 *           input is ignored.
 * MEMACT-2  `memory.write` writes once per operation id, even if it runs several times. Deleting a missing memory is a no-op.
 */
import { z } from "zod";
import type { ToolContext } from "../../../library/define/define.ts";
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { MemoryInput } from "../../../protocol/memory-requests.ts";
import type { MemoryAction } from "../../../protocol/task-definition.ts";
import { DramatisError, hasCode } from "../../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { validate } from "../../../shared/validation.ts";
import { toolErrorCode } from "../tool-error-code.ts";

type MemoryContext = Pick<ToolContext, "memory" | "operationId">;

const address = z.looseObject({ id: z.string().min(1).max(200) });
const batch = z.strictObject({ memories: z.array(z.record(z.string(), z.json())).min(1) });

/** Runs an action on memory with the step's input. Throws `ToolError`. */
export async function runMemory(
  { kind }: MemoryAction,
  given: Json,
  { memory, operationId }: MemoryContext,
): Promise<unknown> {
  const input = withoutAgent(given);
  try {
    switch (kind) {
      case "memory.write": {
        const isBatch = "memories" in input;
        const inputs = isBatch ? validate(batch, input).memories : [input];
        const written = await memory.write(inputs.map((one, index) => once(one, operationId, index)));
        return isBatch ? { memories: written } : written[0];
      }
      case "memory.read":
        return await memory.read(validate(address, input).id);
      case "memory.search":
        return await memory.search(asGiven(input));
      case "memory.list": {
        const { items, nextCursor } = await memory.list(asGiven(input));
        return { memories: items, ...(nextCursor !== undefined && { nextCursor }) };
      }
      case "memory.update": {
        const { id, ...change } = validate(address, input);
        return await memory.update(id, asGiven(change));
      }
      case "memory.delete":
        return { deleted: await deleted(memory, validate(address, input).id) };
      case "memory.archive":
        return await memory.archive(validate(address, input).id);
      default:
        return kind satisfies never;
    }
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const { message, retriable } = error;
    throw new ToolError(message, { code: toolErrorCode(error), retriable, cause: error });
  }
}

/** Returns the input without members that name an agent (MEMACT-1). */
function withoutAgent(given: Json): JsonObject {
  if (!isJsonObject(given)) throw new ToolError("Its input must be an object.", { code: "INVALID_INPUT" });
  const { agentId: _, agent_id: __, ...input } = given;
  return input;
}

/** Returns a memory to write, with an idempotency key (MEMACT-2). */
function once(given: JsonObject, operationId: string, index: number): MemoryInput {
  return asGiven({ idempotencyKey: `${operationId}/${index}`, ...withoutAgent(given) });
}

/** Erases a memory. Reports whether it existed. */
async function deleted(memory: ToolContext["memory"], id: string): Promise<boolean> {
  try {
    await memory.delete(id);
    return true;
  } catch (error) {
    if (hasCode(error, "NOT_FOUND")) return false;
    throw error;
  }
}

/** Casts an input to the parameter of a method. */
function asGiven<Value extends object>(input: object): Value {
  // SAFETY: the agent validates the input. This code does not read it.
  return input as Value;
}
