/** `/api/triggers`: triggers of the tenant, which start runs and turns. Authors create and change them. */
import { ulid } from "ulid";
import { z } from "zod";
import { checkNew } from "../../protocol/location-policy.ts";
import {
  changeTrigger,
  newTrigger,
  type TriggerApi,
  trigger,
  triggerId,
  triggerSummary,
  triggerWithSecret,
} from "../../protocol/trigger-api.ts";
import { removeTrigger } from "../../protocol/webhook.ts";
import { forbidden, unwrap } from "../../shared/errors.ts";
import { inJurisdiction } from "../../shared/location.ts";
import { mayAuthor } from "../../shared/principal.ts";
import type { RequestVariables } from "../base/context.ts";
import { pageSchema } from "../base/query.ts";
import { empty, json, page } from "../base/respond.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const TRIGGERS = "/api/triggers";
const TRIGGER = `${TRIGGERS}/:id` as const;

const params = z.object({ id: triggerId });

const EXAMPLE = {
  when: { cron: "30 6 * * mon-fri", timeZone: "Europe/Berlin" },
  starts: { workflow: "demo/summaries", input: { documents: ["One.", "Two!"] } },
};

export const triggerRoutes: readonly Route[] = [
  route({
    id: "createTrigger",
    method: "post",
    path: TRIGGERS,
    tag: "triggers",
    summary: "Create a trigger",
    description:
      "For authors and administrators. `when` is a time, a cron expression with a zone of the IANA database, or a webhook. `starts` is a workflow with its input, or the content of a message to a conversation. The trigger acts as the caller, without roles. For a webhook the answer has its `secret`, which is shown only once.",
    body: newTrigger.meta({ example: EXAMPLE }),
    answers: [{ status: 201, description: "The trigger.", body: triggerWithSecret, location: true }],
    errors: ["FORBIDDEN", "NOT_FOUND", "CONFLICT"],
    permit: ({ principal }) => {
      if (!mayAuthor(principal))
        throw forbidden("Only authors and administrators may create and change triggers.");
    },
    handle: async ({ body: { jurisdiction, locationHint, ...input } }, { principal, actors, location }) => {
      const policy = location(principal.tenant);
      const id = inJurisdiction(`trig_${ulid()}`, jurisdiction ?? policy.jurisdiction);
      checkNew(id, policy, "/jurisdiction");
      const actor = await actors.trigger(principal.tenant, id, locationHint ?? policy.locationHint);
      return json(unwrap(await actor.create(principal, { id, ...input })), 201, `${TRIGGERS}/${id}`);
    },
  }),
  route({
    id: "listTriggers",
    method: "get",
    path: TRIGGERS,
    tag: "triggers",
    summary: "List triggers",
    description:
      "Triggers that act as the caller. Operators and administrators get all triggers of the tenant. The list omits input, content and times.",
    query: pageSchema,
    answers: onePage("triggers", triggerSummary),
    handle: async ({ query }, { principal, triggers }) =>
      page("triggers", await triggers().list(principal, query)),
  }),
  route({
    id: "getTrigger",
    method: "get",
    path: TRIGGER,
    tag: "triggers",
    summary: "Read a trigger",
    description: "For the subject that it acts as, operators and administrators.",
    params,
    answers: ok("The trigger.", trigger),
    handle: async ({ params }, ports) =>
      json(unwrap(await (await triggerOf(ports, params)).view(ports.principal))),
  }),
  route({
    id: "changeTrigger",
    method: "patch",
    path: TRIGGER,
    tag: "triggers",
    summary: "Change a trigger",
    description:
      "For authors and administrators. Give at least one field. The trigger then acts as the caller, unless the change only disables it. A time cannot become a webhook, and a webhook cannot become a time. A trigger that is enabled again continues with its next future time.",
    params,
    body: changeTrigger.meta({ example: { enabled: false } }),
    answers: ok("The trigger.", trigger),
    errors: ["FORBIDDEN"],
    handle: async ({ params, body }, ports) =>
      json(unwrap(await (await triggerOf(ports, params)).update(ports.principal, body))),
  }),
  route({
    id: "deleteTrigger",
    method: "delete",
    path: TRIGGER,
    tag: "triggers",
    summary: "Delete a trigger",
    description: "Started runs and turns continue.",
    params,
    answers: [{ status: 204, description: "The trigger is deleted." }],
    errors: ["FORBIDDEN"],
    handle: async ({ params }, ports) => {
      await removeTrigger(await triggerOf(ports, params), ports.principal);
      return empty();
    },
  }),
  route({
    id: "rotateTriggerSecret",
    method: "post",
    path: `${TRIGGER}/rotate`,
    tag: "triggers",
    summary: "Replace the secret of a webhook",
    description:
      "For authors and administrators. The old secret ends at once. The trigger acts as the caller from then on.",
    params,
    answers: ok("The trigger, with its new secret.", triggerWithSecret),
    errors: ["FORBIDDEN", "CONFLICT"],
    handle: async ({ params }, ports) =>
      json(unwrap(await (await triggerOf(ports, params)).rotate(ports.principal))),
  }),
];

function triggerOf({ principal, actors }: RequestVariables, { id }: { id: string }): Promise<TriggerApi> {
  return actors.trigger(principal.tenant, id);
}
