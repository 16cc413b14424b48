/**
 * The marks of the parts of a turn. Pure.
 *
 * RECALL-8  A memory that a turn, a hook or an extraction writes is tainted if and only if its request has untrusted content. Results and errors
 *           of tools, of clients and of other agents, and words of other agents are untrusted. So are attachments, an imported history,
 *           messages that their sender calls untrusted, bodies of webhooks, and tainted memories. The tools of memory add no mark of their own.
 */
import { builtIn } from "../../../library/built-in/built-in.ts";
import { hasMedia, joinedMarks, type Mark, storedMark, wholeMark } from "../../../model/mark.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import type { Operation } from "./operation.ts";
import type { Turn, UsedMemory } from "./turn.ts";

type Message = Pick<Turn, "caller" | "input" | "inputMark">;

/** Returns the mark of the text of the message that began a turn. */
export function markOfText({ caller, inputMark }: Pick<Message, "caller" | "inputMark">): Mark {
  return joinedMarks(caller.type === "user" ? [] : ["colleague"], inputMark);
}

/** Returns the mark of the message that began a turn. */
export function markOfMessage({ input, ...message }: Message): Mark {
  const isDocument = typeof input !== "string" && hasMedia(input);
  return joinedMarks(markOfText(message), isDocument ? ["document"] : []);
}

/** Returns the mark of an operation's result, or of its error. */
export function markOfResult(
  operation: Pick<Operation, "tool" | "result"> & Partial<Pick<Operation, "target" | "status" | "approval">>,
): Mark {
  const { tool, target, status, approval, result } = operation;
  const isUnanswered = result === undefined || status === "cancelled";
  // The platform wrote the result.
  if (isUnanswered || (approval !== undefined && approval.outcome !== "approved")) return [];
  if (target === "client") return ["client"];
  if (target === "agent") return ["colleague"];
  // The agent has no such tool.
  if (tool === null) return [];
  return tool.library === builtIn.id ? markOfBuiltIn(tool.id, operation) : ["tool"];
}

/** Returns the mark of the result of a tool of the platform: the marks of the content that it quotes. */
function markOfBuiltIn(id: string, operation: Pick<Operation, "tool" | "result">): Mark {
  switch (id) {
    case "remember":
    case "forget":
      return [];
    case "recall":
      return markOfList(operation, "memories", ({ tainted }) => (tainted === true ? ["memory"] : []));
    case "history":
      return markOfList(operation, "turns", ({ mark }) => storedMark(mark) ?? []);
    default:
      return ["tool"];
  }
}

/** Returns the mark of the content of a turn: its message, its replies, its results, and the memories in its notes. */
export function markOfTurn({
  mark,
  operations,
  told,
  toldBefore = [],
  ...message
}: Message & Pick<Turn, "mark" | "operations" | "told" | "toldBefore">): Mark {
  const isMemory = told?.tainted === true || toldBefore.some(({ tainted }) => tainted);
  return joinedMarks(
    mark,
    markOfMessage(message),
    isMemory ? ["memory"] : [],
    ...operations.map(markOfResult),
  );
}

/** Returns the mark of the request that led to the calls of a reply. */
export function markOfCall({ replies }: Pick<Turn, "replies">, reply: number): Mark {
  return wholeMark(replies[reply] ?? {});
}

/** Returns the memories that a call of `recall` has returned. */
export function recalledBy(operation: Pick<Operation, "tool" | "result">): UsedMemory[] {
  const { tool } = operation;
  if (tool?.library !== builtIn.id || tool.id !== "recall") return [];
  return (listed(operation, "memories") ?? []).flatMap(({ id, version, tainted }) => {
    if (typeof id !== "string" || typeof version !== "number") return [];
    return [{ id, version, ...(tainted === true && { tainted }) }];
  });
}

/** Returns the mark of a list in a result. A result without the list is not in the form that the tool gave it. */
function markOfList(
  operation: Pick<Operation, "result">,
  name: string,
  of: (item: JsonObject) => Mark,
): Mark {
  if (operation.result?.success === false) return [];
  const list = listed(operation, name);
  return list === undefined ? ["tool"] : joinedMarks(...list.map(of));
}

/** Returns the objects in a list of a successful result; `undefined` if the result has no such list. */
function listed({ result }: Pick<Operation, "result">, name: string): JsonObject[] | undefined {
  const list = result?.success && isJsonObject(result.result) ? result.result[name] : undefined;
  return Array.isArray(list) ? list.filter(isJsonObject) : undefined;
}
