/** The REST binding of A2A below `/a2a/:id` (A2A-11). */
import type { Context } from "hono";
import { z } from "zod";
import { protocolError, statusError } from "../../compat/a2a/errors.ts";
import { newConfigBody } from "../../compat/a2a/push.ts";
import { sendParams } from "../../compat/a2a/requests.ts";
import { type MethodCall, messageMethod, queryParams, taskCall } from "../../compat/a2a/rest.ts";
import type { StreamEvent } from "../../compat/a2a/wire.ts";
import { ids } from "../../protocol/scalars.ts";
import type { HttpEnv } from "../base/context.ts";
import { json, jsonLater, noOperation, sse } from "../base/respond.ts";
import { type ApiOperation, ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { AGENT, callOf } from "./agent.ts";
import { statusAnswer } from "./errors.ts";
import { brokenStream } from "./json-rpc.ts";
import { runMethod } from "./methods.ts";

const params = z.object({ id: ids.agent });
const taskParams = params.extend({
  task: z.string().describe("The id of a task, with `:cancel` or `:subscribe` if the request is for that."),
});

const CONFIGS = `${AGENT}/tasks/:task/pushNotificationConfigs`;

const object = z.looseObject({}).meta({ id: "A2aObject", description: "An object of A2A 1.0." });
const event = z.looseObject({}).meta({ id: "A2aEvent", description: "A `StreamResponse` of A2A 1.0." });

const text = (description: string) => z.string().describe(description).exactOptional();
const historyLength = text("The maximum number of messages in the history of a task.");

/** A query as text. The method checks the values. */
const listQuery = z.object({
  contextId: text("Tasks of this context."),
  status: text("Tasks in this state, such as `TASK_STATE_WORKING`."),
  pageSize: text("From 1 to 100. Default: 50."),
  pageToken: text("The `nextPageToken` of the previous page."),
  historyLength,
  statusTimestampAfter: text("Tasks that changed at this time or later, in ISO 8601."),
  includeArtifacts: text("With `true`, the tasks have their artifacts."),
});

/** `UNSUPPORTED` is for the version of the client. */
const shared = {
  tag: "a2a",
  errorFormat: "a2a",
  errors: ["UNSUPPORTED"],
} as const satisfies Partial<ApiOperation>;
const EVENTS = {
  status: 200,
  description: "The answer, or its events.",
  body: object,
  stream: event,
} as const;

export const restRoutes: readonly Route[] = [
  route({
    ...shared,
    id: "sendA2aMessage",
    method: "post",
    path: `${AGENT}/:message`,
    summary: "Send a message with A2A over REST",
    description:
      "`message:send` answers with the task, `message:stream` with its events. As `SendMessage` and `SendStreamingMessage`.",
    params: params.extend({
      message: z
        .string()
        .meta({ description: "`message:send` or `message:stream`.", example: "message:send" }),
    }),
    body: sendParams,
    answers: [EVENTS],
    errors: ["FORBIDDEN", "PERMISSION_DENIED", "TOO_MANY_TURNS", "UNSUPPORTED"],
    handle: ({ params: { message }, body }, _, context) => {
      const method = messageMethod(message);
      return method === undefined ? noOperation(context) : answerRest(context, { method, params: body });
    },
  }),
  route({
    ...shared,
    id: "listA2aTasks",
    method: "get",
    path: `${AGENT}/tasks`,
    summary: "List tasks with A2A over REST",
    description: "As `ListTasks`.",
    params,
    query: listQuery,
    answers: ok("A page of tasks.", object),
    handle: ({ query }, _, context) =>
      answerRest(context, { method: "ListTasks", params: queryParams(query) }),
  }),
  ...(["get", "post"] as const).map((method) =>
    route({
      ...shared,
      id: method === "get" ? "getA2aTask" : "changeA2aTask",
      method,
      path: `${AGENT}/tasks/:task`,
      summary: `${method === "get" ? "Read" : "Cancel"} or follow a task with A2A over REST`,
      description:
        method === "get"
          ? "As `GetTask`. With `:subscribe` after the id as `SubscribeToTask`."
          : "With `:cancel` after the id as `CancelTask`, with `:subscribe` as `SubscribeToTask`. A body is ignored.",
      params: taskParams,
      ...(method === "get" && { query: z.object({ historyLength }) }),
      answers: [EVENTS],
      handle: ({ params: { task }, query }, _, context) => {
        const call = taskCall(task, context.req.method);
        if (call === undefined) return noOperation(context);
        return answerRest(context, { ...call, params: { ...queryParams(query ?? {}), ...call.params } });
      },
    }),
  ),
  route({
    ...shared,
    id: "createA2aPushConfig",
    method: "post",
    path: CONFIGS,
    summary: "Create a configuration of push notifications with A2A over REST",
    description: "As `CreateTaskPushNotificationConfig`. The answer has no secrets.",
    params: taskParams,
    body: newConfigBody,
    answers: ok("The configuration.", object),
    handle: ({ params: { task: taskId }, body }, _, context) =>
      answerRest(context, { method: "CreateTaskPushNotificationConfig", params: { ...body, taskId } }),
  }),
  route({
    ...shared,
    id: "listA2aPushConfigs",
    method: "get",
    path: CONFIGS,
    summary: "List the configurations of push notifications of a task with A2A over REST",
    description: "As `ListTaskPushNotificationConfigs`.",
    params: taskParams,
    answers: ok("The configurations of the caller, without secrets.", object),
    handle: ({ params: { task: taskId } }, _, context) =>
      answerRest(context, { method: "ListTaskPushNotificationConfigs", params: { taskId } }),
  }),
  ...(["get", "delete"] as const).map((method) => {
    const [verb, name] = method === "get" ? ["Read", "Get"] : ["Delete", "Delete"];
    return route({
      ...shared,
      id: `${method}A2aPushConfig`,
      method,
      path: `${CONFIGS}/:config`,
      summary: `${verb} a configuration of push notifications with A2A over REST`,
      description: `As \`${name}TaskPushNotificationConfig\`.`,
      params: taskParams.extend({ config: z.string().describe("The id of a configuration.") }),
      answers: ok(method === "get" ? "The configuration, without secrets." : "It is deleted.", object),
      handle: ({ params: { task: taskId, config: id } }, _, context) =>
        answerRest(context, { method: `${name}TaskPushNotificationConfig`, params: { taskId, id } }),
    });
  }),
  route({
    ...shared,
    id: "getA2aExtendedCard",
    method: "get",
    path: `${AGENT}/extendedAgentCard`,
    summary: "Read the extended agent card with A2A over REST",
    params,
    answers: ok("The card.", object),
    handle: (_, __, context) => answerRest(context, { method: "GetExtendedAgentCard", params: {} }),
  }),
];

async function answerRest(context: Context<HttpEnv>, call: MethodCall): Promise<Response> {
  try {
    const answer = await runMethod(callOf(context), call);
    if ("events" in answer) return sse(context, (signal) => payloads(answer.events(signal)));
    return "later" in answer ? jsonLater(answer.later) : json(answer.result);
  } catch (error) {
    return statusAnswer(protocolError(error));
  }
}

async function* payloads(
  events: AsyncIterable<StreamEvent>,
): AsyncGenerator<{ event?: string; data: string }, void> {
  try {
    for await (const one of events) yield { data: JSON.stringify(one) };
  } catch (error) {
    yield { event: "error", data: JSON.stringify({ error: statusError(brokenStream(error)) }) };
  }
}
