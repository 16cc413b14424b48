/**
 * The taints of the parts of a turn. Pure.
 *
 * RECALL-8  A memory that a turn, a hook or an extraction writes is tainted if and only if its request has untrusted content. Results and errors
 *           of tools, of clients and of other agents, and words of other agents are untrusted. So are attachments, an imported history,
 *           messages that their sender calls untrusted, bodies of webhooks, and tainted memories. The tools of memory add no taint of their own.
 */
import { builtIn } from "../../../library/built-in/built-in.ts";
import { hasMedia, joinTaints, storedTaint, type Taint, wholeTaint } from "../../../model/taint.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import type { Operation } from "./operation.ts";
import type { Turn, UsedMemory } from "./turn.ts";

type Message = Pick<Turn, "caller" | "input" | "inputTaint">;

/** Returns the taint of the text of the message that began a turn. */
export function taintOfText({ caller, inputTaint }: Pick<Message, "caller" | "inputTaint">): Taint {
  return joinTaints(caller.type === "user" ? [] : ["colleague"], inputTaint);
}

export function taintOfMessage({ input, ...message }: Message): Taint {
  const isDocument = typeof input !== "string" && hasMedia(input);
  return joinTaints(taintOfText(message), isDocument ? ["document"] : []);
}

export function taintOfResult(
  operation: Pick<Operation, "tool" | "result"> &
    Partial<Pick<Operation, "target" | "remote" | "status" | "approval" | "resultTaint">>,
): Taint {
  const { tool, target, remote, status, approval, result, resultTaint } = operation;
  // A call that was taken over has lost its target.
  if (resultTaint !== undefined) return resultTaint;
  const isUnanswered = result === undefined || status === "cancelled";
  // The platform wrote the result.
  if (isUnanswered || (approval !== undefined && approval.outcome !== "approved")) return [];
  if (target === "client") return ["client"];
  if (target === "agent" || remote !== undefined) return ["colleague"];
  // The agent has no such tool.
  if (tool === null) return [];
  return tool.library === builtIn.id ? taintOfBuiltIn(tool.id, operation) : ["tool"];
}

/** Returns the taint of the result of a tool of the platform: the taints of the content that it quotes. */
function taintOfBuiltIn(id: string, operation: Pick<Operation, "tool" | "result">): Taint {
  switch (id) {
    case "remember":
    case "forget":
    case "read_skill":
      return [];
    case "recall":
      return taintOfList(operation, "memories", ({ tainted }) => (tainted === true ? ["memory"] : []));
    case "history":
      return taintOfList(operation, "turns", ({ taint }) => storedTaint(taint) ?? []);
    default:
      return ["tool"];
  }
}

/** Returns the taint of the content of a turn: its message, its replies, its results, and the memories in its notes. */
export function taintOfTurn({
  taint,
  operations,
  recalled,
  recalledBefore = [],
  ...message
}: Message & Pick<Turn, "taint" | "operations" | "recalled" | "recalledBefore">): Taint {
  const isMemory = recalled?.tainted === true || recalledBefore.some(({ tainted }) => tainted);
  return joinTaints(
    taint,
    taintOfMessage(message),
    isMemory ? ["memory"] : [],
    recalled?.knowledge === undefined ? [] : ["document"],
    ...operations.map(taintOfResult),
  );
}

export function taintOfCall({ replies }: Pick<Turn, "replies">, reply: number): Taint {
  return wholeTaint(replies[reply] ?? {});
}

export function recalledBy(operation: Pick<Operation, "tool" | "result">): UsedMemory[] {
  const { tool } = operation;
  if (tool?.library !== builtIn.id || tool.id !== "recall") return [];
  return (listed(operation, "memories") ?? []).flatMap(({ id, version, tainted }) => {
    if (typeof id !== "string" || typeof version !== "number") return [];
    return [{ id, version, ...(tainted === true && { tainted }) }];
  });
}

/** Returns the taint of a list in a result. A result without the list is not in the form that the tool gave it. */
function taintOfList(
  operation: Pick<Operation, "result">,
  name: string,
  of: (item: JsonObject) => Taint,
): Taint {
  if (operation.result?.success === false) return [];
  const list = listed(operation, name);
  return list === undefined ? ["tool"] : joinTaints(...list.map(of));
}

/** Returns the objects in a list of a successful result; `undefined` if the result has no such list. */
function listed({ result }: Pick<Operation, "result">, name: string): JsonObject[] | undefined {
  const list = result?.success && isJsonObject(result.result) ? result.result[name] : undefined;
  return Array.isArray(list) ? list.filter(isJsonObject) : undefined;
}
