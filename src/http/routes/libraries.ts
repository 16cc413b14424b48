/** `/api/libraries`: versioned definitions. Every principal of the tenant may read, authors and administrators may write. */
import type { z } from "zod";
import { checkedAction, checkedPrompt, checkedTask } from "../../library/authoring/author-tasks.ts";
import { checkedWorkflow } from "../../library/authoring/author-workflows.ts";
import {
  checkedModelProfile,
  checkedPersona,
  checkedTool,
  type LibraryPorts,
} from "../../library/authoring/authoring.ts";
import type { DefinitionKind, DefinitionTypes } from "../../library/definitions/definition.ts";
import type { DefinitionKey } from "../../library/definitions/reference.ts";
import type { Registry } from "../../library/registry/registry.ts";
import { workflowSchema } from "../../library/workflows/workflow-schema.ts";
import { validate } from "../../shared/validation.ts";
import { readBody } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { pageOptions, pathParams } from "../base/query.ts";
import { json, page } from "../base/respond.ts";
import {
  DEFINITIONS,
  definitionParams,
  LIBRARIES,
  LIBRARY,
  libraryParams,
  versionParams,
} from "./library-operations.ts";

export function libraryRoutes(app: HttpRoutes): void {
  app.get(LIBRARIES, async ({ req, var: ports }) =>
    page("libraries", await registryOf(ports).libraries(pageOptions(req.query()))),
  );

  app.get(LIBRARY, async ({ req, var: ports }) => {
    const { library } = pathParams(libraryParams, req);
    return json(await registryOf(ports).library(library));
  });

  definitionRoutes(app, "persona", DEFINITIONS.persona, checkedPersona);
  definitionRoutes(app, "tool", DEFINITIONS.tool, checkedTool);
  definitionRoutes(app, "model-profile", DEFINITIONS["model-profile"], checkedModelProfile);
  definitionRoutes(app, "task", DEFINITIONS.task, checkedTask);
  definitionRoutes(app, "action", DEFINITIONS.action, checkedAction);
  definitionRoutes(app, "prompt", DEFINITIONS.prompt, checkedPrompt);
  definitionRoutes(app, "workflow", DEFINITIONS.workflow, (ports, key, posted) =>
    checkedWorkflow(ports, key, validate(workflowSchema, posted)),
  );
}

interface Resource<Body> {
  path: (typeof DEFINITIONS)[DefinitionKind]["path"];
  /** Name of the items in a list. */
  resource: string;
  body: z.ZodType<Body>;
  maxBytes: number;
}

/** `check` returns the definition to add. Throws `INVALID_INPUT`. */
function definitionRoutes<Kind extends DefinitionKind, Body extends { id: string }>(
  app: HttpRoutes,
  kind: Kind,
  { path, resource, body, maxBytes }: Resource<Body>,
  check: (
    ports: LibraryPorts,
    key: DefinitionKey,
    posted: Omit<Body, "id">,
  ) => Promise<DefinitionTypes[Kind]>,
): void {
  const list = `${LIBRARY}/${path}` as const;

  app.get(list, async ({ req, var: ports }) => {
    const { library } = pathParams(libraryParams, req);
    return page(resource, await registryOf(ports).list(kind, library, pageOptions(req.query())));
  });

  app.post(list, async (context) => {
    const { principal, libraries } = context.var;
    const { library } = pathParams(libraryParams, context.req);
    const ports = libraries(principal.tenant);
    ports.registry.checkWriter(principal, library);
    const { id, ...posted } = await readBody(context, body, maxBytes);
    const key = { library, id };
    const definition = await check(ports, key, posted);
    const { version, created } = await ports.registry.add(principal, kind, key, definition);
    if (!created) return json(version);
    return json(version, 201, `${LIBRARIES}/${library}/${path}/${id}/versions/${version.version}`);
  });

  app.get(`${list}/:id`, async ({ req, var: ports }) =>
    json(await registryOf(ports).find(kind, pathParams(definitionParams, req))),
  );

  app.get(`${list}/:id/versions`, async ({ req, var: ports }) => {
    const reference = pathParams(definitionParams, req);
    return page("versions", await registryOf(ports).versions(kind, reference, pageOptions(req.query())));
  });

  app.get(`${list}/:id/versions/:version`, async ({ req, var: ports }) =>
    json(await registryOf(ports).find(kind, pathParams(versionParams, req))),
  );
}

function registryOf({ principal, libraries }: HttpEnv["Variables"]): Registry {
  return libraries(principal.tenant).registry;
}
