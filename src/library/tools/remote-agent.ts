/**
 * Tools that an agent of another server answers, over A2A.
 *
 * A2ATOOL-1  The input of a tool with the target `{a2a}` is a `message` and an optional `task_id`, unless the tool has its own schema. The
 *            member `task_id` of an input names the task that the call continues. The remote agent gets the rest of the input.
 * A2ATOOL-2  Such a tool is `idempotent` by default: a repeated call sends the same message id. Its author may declare `once`. It is never
 *            `pure`.
 */
import type { A2aTarget, ToolDefinition, ToolTarget } from "../../protocol/definitions.ts";
import type { JsonObject } from "../../shared/json.ts";
import { serverHost } from "../../shared/server-address.ts";
import { callMessage, MESSAGE_DESCRIPTION } from "./agent-tool.ts";

/** Default time limit of a call of a remote agent, in milliseconds. */
const DEFAULT_REMOTE_TIMEOUT_MS = 3_600_000;

/** The member of a call's input that names the task to continue. */
export const TASK_MEMBER = "task_id";

/** The defaults of a tool that a remote agent answers (A2ATOOL-1, A2ATOOL-2). */
export const REMOTE_DEFAULTS = {
  effect: "idempotent",
  timeoutMs: DEFAULT_REMOTE_TIMEOUT_MS,
  retry: { maxAttempts: 4, backoffMs: 1_000 },
  inputSchema: {
    type: "object",
    properties: {
      message: { type: "string", minLength: 1, description: MESSAGE_DESCRIPTION },
      [TASK_MEMBER]: {
        type: "string",
        minLength: 1,
        description:
          "The `task_id` of an earlier result that asked for input, to answer it. Otherwise leave it out.",
      },
    },
    required: ["message"],
    additionalProperties: false,
  },
} as const satisfies Partial<ToolDefinition>;

/** The error of a `pure` tool that a remote agent answers (A2ATOOL-2). */
export const REMOTE_NEVER_PURE =
  "Must be `idempotent` or `once` for a tool that a remote agent answers. The default is `idempotent`.";

/** Returns the remote agent that answers the calls of a tool; `undefined` for other tools. */
export function a2aTarget(target: ToolTarget | undefined): A2aTarget | undefined {
  return target !== undefined && "a2a" in target ? target : undefined;
}

/** Returns the only host that the calls of a remote agent reach. */
export function remoteHost({ a2a }: A2aTarget): string {
  return serverHost(new URL(a2a));
}

/** Returns the text of a call's message, and the task that the message continues (A2ATOOL-1). */
export function remoteMessage({ [TASK_MEMBER]: continues, ...rest }: JsonObject): {
  text: string;
  continues: string | undefined;
} {
  return { text: callMessage(rest), continues: continues === undefined ? undefined : String(continues) };
}
