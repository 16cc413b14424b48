/** The methods `tasks/get`, `tasks/update` and `tasks/cancel`. */
import {
  type McpServer,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { givenAnswer, questionsOfRun, questionsOfTurn } from "../../compat/mcp/questions.ts";
import {
  isOfTask,
  parseTaskId,
  TASKS,
  type TaskPlace,
  taskOfRun,
  taskOfTurn,
} from "../../compat/mcp/tasks.ts";
import { DramatisError, hasCode, unwrap } from "../../shared/errors.ts";
import type { RequestVariables } from "../base/context.ts";
import { findConversation } from "../routes/conversations.ts";
import { giveAnswers } from "./answers.ts";
import { canElicit, capabilitiesOf, hasTasks, type McpRequest } from "./call.ts";

const params = z.object({ taskId: z.string() });
const updateParams = params.extend({ inputResponses: z.record(z.string(), z.unknown()).optional() });

export function addTasks({ server }: McpServer, { ports }: McpRequest): void {
  server.setRequestHandler("tasks/get", { params }, async ({ taskId }, context) =>
    ofTask(taskId, context, async (place) => ({ ...(await taskAt(ports, place, context)) })),
  );
  server.setRequestHandler("tasks/update", { params: updateParams }, async (given, context) =>
    ofTask(given.taskId, context, async (place) => {
      await taskAt(ports, place, context);
      // The SDK takes the responses out of the parameters.
      const responses = context.mcpReq.inputResponses ?? given.inputResponses ?? {};
      const answers = Object.entries(responses).flatMap(
        ([key, response]) => givenAnswer(key, response) ?? [],
      );
      const ofThisTask = answers.filter((answer) => isOfTask(answer.place, place));
      await giveAnswers(ports, ofThisTask, outstanding);
      return {};
    }),
  );
  server.setRequestHandler("tasks/cancel", { params }, async ({ taskId }, context) =>
    ofTask(taskId, context, async (place) => {
      await outstanding(cancelTask(ports, place));
      return {};
    }),
  );
}

/** Runs a method for a task. Throws errors of the protocol. */
async function ofTask<Result>(
  id: string,
  { mcpReq }: ServerContext,
  run: (place: TaskPlace) => Promise<Result>,
): Promise<Result> {
  if (!hasTasks(capabilitiesOf(mcpReq.envelope)))
    throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
  const place = parseTaskId(id);
  if (place === undefined)
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no task "${id}".`);
  try {
    return await run(place);
  } catch (error) {
    if (!(error instanceof DramatisError)) throw error;
    const isUnknown = error.code === "NOT_FOUND";
    const code = isUnknown ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, isUnknown ? `There is no task "${id}".` : error.message);
  }
}

async function taskAt(ports: RequestVariables, place: TaskPlace, { mcpReq }: ServerContext) {
  const { principal, actors, clock } = ports;
  const now = new Date(clock.now()).toISOString();
  const hasForms = canElicit(capabilitiesOf(mcpReq.envelope));
  if ("runId" in place) {
    const run = unwrap(await (await actors.coordinator(principal.tenant, place.runId)).status(principal));
    return taskOfRun(run, hasForms ? questionsOfRun(run, principal) : [], now);
  }
  const conversation = await findConversation(ports, place.conversationId);
  const turn = unwrap(await conversation.turn(principal, place.turnId));
  return taskOfTurn(place, turn, hasForms ? questionsOfTurn(place, turn, principal) : [], now);
}

async function cancelTask(ports: RequestVariables, place: TaskPlace): Promise<void> {
  const { principal, actors } = ports;
  if ("runId" in place) {
    unwrap(await (await actors.coordinator(principal.tenant, place.runId)).cancel(principal));
    return;
  }
  const conversation = await findConversation(ports, place.conversationId);
  unwrap(await conversation.cancelTurn(principal, place.turnId));
}

/** Waits for a change. A change that comes too late is ignored. */
async function outstanding(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!hasCode(error, "CONFLICT")) throw error;
  }
}
