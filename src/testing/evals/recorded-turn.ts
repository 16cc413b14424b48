/** A recorded turn as the script of a model and the results of tools. */
import type { DeployedCode, ToolCodes } from "../../library/registry/deployed-code.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import type { TurnRecording } from "../../protocol/recording.ts";
import { canonicalJson, type Json, type JsonObject } from "../../shared/json.ts";
import type { ScriptedReply } from "../model-script.ts";

/** The members of a recorded call that an eval reads. */
interface RecordedCall {
  reply: number;
  name: string;
  input: JsonObject;
  result?: { success: boolean; result?: Json; error?: { message: string } };
}

/** The calls of a turn, as its conversation recorded them. */
function callsIn({ turn }: TurnRecording): RecordedCall[] {
  // SAFETY: the conversation that exported the recording wrote its operations.
  return turn.operations as unknown as RecordedCall[];
}

/** Returns the text of the last reply. */
export function answerIn({ turn }: TurnRecording): string {
  return String(turn.replies.at(-1)?.text ?? "");
}

/** Returns the replies of a recorded turn, in order. */
export function repliesIn(recording: TurnRecording): ScriptedReply[] {
  const calls = callsIn(recording);
  return recording.turn.replies.map((reply, index) => {
    const requested = calls
      .filter((call) => call.reply === index)
      .map(({ name, input }) => ({ name, input }));
    return { text: String(reply.text ?? ""), ...(requested.length > 0 && { calls: requested }) };
  });
}

/**
 * Returns code that gives the recorded results of a turn. Of other calls it runs only `pure` tools, and reports the rest to `onMissing`.
 */
export function recordedResults(
  code: DeployedCode,
  recording: TurnRecording,
  onMissing: (problem: string) => void,
): ToolCodes {
  const known = new Map(
    callsIn(recording).flatMap(({ name, input, result }) =>
      result === undefined ? [] : [[keyOf(name, input), result] as const],
    ),
  );
  return {
    toolCode(library, id) {
      const found = code.toolCode(library, id);
      if (found === undefined) return undefined;
      const { effect } = found.definition;
      return {
        ...found,
        async run(input, context) {
          // SAFETY: the input of a call is JSON.
          const recorded = known.get(keyOf(id, input as Json));
          if (recorded?.success) return recorded.result ?? null;
          if (recorded !== undefined) throw new ToolError(recorded.error?.message ?? "The tool failed.");
          if (effect === "pure") return found.run(input, context);
          const problem = `The recording has no result of "${id}" for this input, and the tool is not \`pure\`.`;
          onMissing(problem);
          throw new ToolError(problem);
        },
      };
    },
    actionCode: (library, id) => code.actionCode(library, id),
  };
}

function keyOf(name: string, input: Json): string {
  return `${name} ${canonicalJson(input)}`;
}
