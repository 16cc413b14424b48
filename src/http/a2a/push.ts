/** The methods of push notifications of A2A (A2A-15). */
import { ulid } from "ulid";
import { A2aError } from "../../compat/a2a/errors.ts";
import {
  configParams,
  configsParams,
  newConfigParams,
  type SentConfig,
  shownConfig,
  webhookOf,
} from "../../compat/a2a/push.ts";
import type { TurnPlace } from "../../compat/a2a/tasks.ts";
import { unwrap } from "../../shared/errors.ts";
import { invalidAt, validate } from "../../shared/validation.ts";
import { findConversation } from "../routes/conversations.ts";
import { type A2aCall, ifFound, noTask, placeOf, taskAt } from "./tasks.ts";

type Method = (call: A2aCall, params: unknown) => Promise<{ result: object }>;

export const PUSH_METHODS: Readonly<Record<string, Method>> = {
  async CreateTaskPushNotificationConfig(call, params) {
    checkSupported(call);
    const { taskId, ...config } = validate(newConfigParams, params);
    checkConfig(call, config, "");
    return { result: await addConfig(call, await taskPlace(call, taskId), config, ulid()) };
  },
  async GetTaskPushNotificationConfig(call, params) {
    checkSupported(call);
    const { taskId, id } = validate(configParams, params);
    const place = await taskPlace(call, taskId);
    const found = (await configs(call, place)).find((one) => one.id === id);
    if (found === undefined) throw noTask();
    return { result: found };
  },
  async ListTaskPushNotificationConfigs(call, params) {
    checkSupported(call);
    const place = await taskPlace(call, validate(configsParams, params).taskId);
    return { result: { configs: await configs(call, place), nextPageToken: "" } };
  },
  async DeleteTaskPushNotificationConfig(call, params) {
    checkSupported(call);
    const { taskId, id } = validate(configParams, params);
    const place = await taskPlace(call, taskId);
    const conversation = await findConversation(call.ports, place.conversationId);
    unwrap(await conversation.removeWebhook(call.ports.principal, place.turnId, id));
    return { result: {} };
  },
};

/** Checks the configuration of a message, before the message has an effect. Throws `PUSH_NOTIFICATION_NOT_SUPPORTED`, `INVALID_INPUT`. */
export function checkConfig(call: A2aCall, { url }: SentConfig, path: string): void {
  const problem = checkSupported(call)(new URL(url));
  if (problem !== null) throw invalidAt(`${path}/url`, problem);
}

/** Adds a configuration to a task, and returns it without its secrets. */
export async function addConfig(
  { ports }: A2aCall,
  place: TurnPlace,
  config: SentConfig,
  defaultId: string,
): Promise<object> {
  const conversation = await findConversation(ports, place.conversationId);
  const hook = webhookOf(place, config, defaultId);
  const added = async () => unwrap(await conversation.addWebhook(ports.principal, hook));
  return shownConfig(place, await ifFound(added(), noTask));
}

function checkSupported({ ports: { webhookProblem } }: A2aCall): (url: URL) => string | null {
  if (webhookProblem !== undefined) return webhookProblem;
  throw new A2aError(
    "PUSH_NOTIFICATION_NOT_SUPPORTED",
    "The server sends no push notifications. Its deployer has not listed hosts for them.",
  );
}

async function taskPlace(call: A2aCall, id: string): Promise<TurnPlace> {
  const place = placeOf(id);
  await taskAt(call, place);
  return place;
}

async function configs({ ports }: A2aCall, place: TurnPlace) {
  const conversation = await findConversation(ports, place.conversationId);
  const hooks = unwrap(await conversation.webhooks(ports.principal, place.turnId));
  return hooks.map((hook) => shownConfig(place, hook));
}
