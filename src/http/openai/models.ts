/** `/v1/models`: the tenant's agents as models. */
import { z } from "zod";
import type { AgentIdentity } from "../../protocol/agent-api.ts";
import { ids } from "../../protocol/scalars.ts";
import { defined } from "../../shared/defined.ts";
import { unwrap } from "../../shared/errors.ts";
import { isAgentId } from "../../shared/identifiers.ts";
import { json } from "../base/respond.ts";
import { ok } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";
import { noSuchModel } from "./errors.ts";

const PATH = "/v1/models";
const ONE = `${PATH}/:id` as const;
const PAGE_SIZE = 200;
/** The list of this protocol has no pages, so its length is limited. */
const MAX_MODELS = 1_000;

const model = z
  .strictObject({
    id: ids.agent,
    object: z.literal("model"),
    created: z.int().describe("Seconds since the epoch."),
    owned_by: z.string(),
  })
  .meta({ id: "OpenAiModel" });

export const modelRoutes: readonly Route[] = [
  route({
    id: "openAiListModels",
    method: "get",
    path: PATH,
    tag: "openai",
    summary: "List the tenant's agents as models",
    description: `The first ${MAX_MODELS} by creation.`,
    answers: ok("The agents.", z.strictObject({ object: z.literal("list"), data: z.array(model) })),
    errorFormat: "openai",
    handle: async (_, { principal, directory }) => {
      const data: z.output<typeof model>[] = [];
      let cursor: string | undefined;
      do {
        const options = { limit: PAGE_SIZE, ...defined({ cursor }) };
        const { items, nextCursor } = await directory().agents(principal.tenant, options);
        data.push(...items.map(toModel));
        cursor = nextCursor;
      } while (cursor !== undefined && data.length < MAX_MODELS);
      return json({ object: "list", data });
    },
  }),
  route({
    id: "openAiGetModel",
    method: "get",
    path: ONE,
    tag: "openai",
    summary: "Read an agent as a model",
    params: z.object({ id: z.string().meta({ description: "Id of an agent.", example: "assistant" }) }),
    answers: ok("The agent.", model),
    errorFormat: "openai",
    handle: async ({ params: { id } }, { principal, actors }) => {
      if (!isAgentId(id)) throw noSuchModel(id);
      const identity = await (await actors.agent(principal.tenant, id)).identity();
      if (!identity.ok && identity.error.code === "NOT_FOUND") throw noSuchModel(id);
      return json(toModel(unwrap(identity)));
    },
  }),
];

function toModel({ id, createdAt, tenant }: AgentIdentity): z.output<typeof model> {
  return { id, object: "model", created: Math.floor(Date.parse(createdAt) / 1000), owned_by: tenant };
}
