/** Commands that change a conversation or a run, each with one request. */
import type { ApprovalAnswer } from "../protocol/requests.ts";
import { isJsonObject, parseJson } from "../shared/json.ts";
import type { Answer, Cli, Command, Options } from "./command.ts";
import { wrongUsage } from "./failure.ts";
import { count, jsonText } from "./text.ts";

const REASON = { "--reason <text>": "kept in the journal" };
const TURN = { "<conversation>": "id of the conversation", "<turn>": "id of the turn" };
const WAITING = {
  "<place>": "id of the conversation or the run",
  "<operation>": "id of the operation that waits, see: dramatis list approvals",
};

const ANSWER = {
  "--values <json>": "the answer to a question of an MCP server, as JSON",
  "--round <number>": "the number of the question, see: dramatis list approvals",
};

/** Returns the answer to a question of an MCP server in the options. The server checks its members. */
function answerOf({ values, round }: Options): Pick<ApprovalAnswer, "values" | "round"> {
  const named = round === undefined ? {} : { round: Number(round) };
  if (values === undefined) return named;
  const read = parseJson(values);
  if (isJsonObject(read)) return { values: read, ...named };
  throw wrongUsage("--values must be a JSON object, such as '{\"count\": 3}'.");
}

/** Returns the kind of thing that an id names. Throws a failure for the id of a turn, which needs its conversation. */
export function kindOf(id: string): "conversation" | "run" | "agent" {
  if (/^turn_/.test(id))
    throw wrongUsage(
      `A turn needs its conversation. Write the id of the conversation before it: conv_… ${id}`,
    );
  return /^conv_/.test(id) ? "conversation" : /^run_/.test(id) ? "run" : "agent";
}

/** Returns a failure for an id of the wrong kind. */
export function notFor(id: string): Error {
  return wrongUsage(`"${id}" names no conversation (conv_…) and no run (run_…).`);
}

function decision(name: string, approved: boolean): Command {
  const done = approved ? "Approved" : "Denied";
  return {
    name,
    about: `${name === "deny" ? "denies" : "approves"} a call of a tool, or a question of a run, that waits for you`,
    args: WAITING,
    options: { "--reason <text>": "the model, or the run, gets it", ...(approved && ANSWER) },
    async run({ client, signal }, [place = "", operation = ""], { reason, ...given }) {
      const text = `${done} ${operation}.`;
      switch (kindOf(place)) {
        case "conversation": {
          const answer = { approved, ...(reason !== undefined && { reason }), ...answerOf(given) };
          return {
            value: await client.operations.resolveApproval(place, operation, answer, { signal }),
            text,
          };
        }
        case "run": {
          const answer = { approved, ...(reason !== undefined && { comment: reason }) };
          return { value: await client.runs.answer(place, operation, answer, { signal }), text };
        }
        case "agent":
          throw notFor(place);
      }
    },
  };
}

async function cancel({ client, signal }: Cli, [id = "", turn]: (string | undefined)[], { reason }: Options) {
  const options = { signal, ...(reason !== undefined && { reason }) };
  const kind = kindOf(id);
  if (kind === "agent" || (turn !== undefined && kind === "run")) throw notFor(id);
  if (turn !== undefined)
    return { value: await client.turns.cancel(id, turn, options), text: `Cancelled ${turn}.` };
  if (kind === "run") return { value: await client.runs.cancel(id, options), text: `Cancelled ${id}.` };
  return {
    value: await client.conversations.cancel(id, options),
    text: `Stopped ${id}. It takes messages again after: dramatis call resumeConversation id=${id}`,
  };
}

async function replay(
  { client, signal }: Cli,
  [id = "", turn = ""]: (string | undefined)[],
): Promise<Answer> {
  const value = await client.turns.replay(id, turn, { signal });
  const { divergence, partial = [] } = value;
  const entries = partial.length === 1 ? "1 entry" : `${partial.length} entries`;
  const assumed = partial.length === 0 ? "" : ` It could not check ${entries} taken as recorded.`;
  if (divergence === null)
    return {
      value,
      text: `The replay of ${turn} made ${count(value.calls, "call")} and no difference.${assumed}`,
    };
  const shown = (entry: unknown) => (entry === null ? "no entry" : jsonText(entry));
  const text = `The replay differs at entry ${divergence.seq}.\nrecorded  ${shown(divergence.expected)}\ntoday     ${shown(divergence.actual)}`;
  return { value, text, failed: true };
}

export const ACT_COMMANDS: readonly Command[] = [
  decision("approve", true),
  decision("deny", false),
  {
    name: "cancel",
    about: "stops a turn, a conversation with all its turns, or a run",
    args: { "<id>": "id of a conversation or a run", "[turn]": "id of a turn of the conversation" },
    options: REASON,
    run: cancel,
  },
  {
    name: "replay",
    about: "plans a turn again on its recorded results, without a call; a difference is exit code 1",
    args: TURN,
    run: replay,
  },
  {
    name: "fork",
    about: "creates a conversation with the history up to a turn, by default the newest completed turn",
    args: { "<conversation>": "id of the conversation", "[turn]": "id of the last turn of the fork" },
    async run({ client, signal }, [id = "", turnId]) {
      const value = await client.conversations.fork(id, turnId === undefined ? {} : { turnId }, { signal });
      return { value, text: value.id };
    },
  },
  {
    name: "dead-letters redeliver",
    about: "delivers a dead letter again, for operators",
    args: { "<id>": "id of the dead letter" },
    async run({ client, signal }, [id = ""]) {
      return { value: await client.deadLetters.redeliver(id, { signal }), text: `${id} is on its way.` };
    },
  },
];
