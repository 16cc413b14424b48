/** The actions on the workspace and the artifacts of a run or a conversation. The step's input is the input of the operation. */
import { ToolError } from "../../../library/tools/tool-error.ts";
import { DramatisError } from "../../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { toolErrorCode } from "../tool-error-code.ts";

/** Throws `ToolError`. */
export async function runOperation(
  input: Json,
  perform: (input: JsonObject) => Promise<JsonObject>,
): Promise<unknown> {
  if (!isJsonObject(input)) throw new ToolError("Its input must be an object.", { code: "INVALID_INPUT" });
  try {
    return await perform(input);
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const { message, retriable, options } = error;
    throw new ToolError(message, { code: toolErrorCode(error), retriable, rule: options.rule, cause: error });
  }
}
