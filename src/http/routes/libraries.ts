/** `/api/libraries`: versioned definitions. Every principal of the tenant may read, authors and administrators may write. */
import type { z } from "zod";
import {
  checkedModelProfile,
  checkedPersona,
  checkedTool,
  type LibraryPorts,
} from "../../library/authoring.ts";
import type { DefinitionKind, DefinitionTypes } from "../../library/definition.ts";
import type { DefinitionKey } from "../../library/reference.ts";
import type { Registry } from "../../library/registry.ts";
import { DramatisError } from "../../shared/errors.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpEnv, HttpRoutes } from "../base/context.ts";
import { pageOptions } from "../base/query.ts";
import { json, page, refuseOtherMethods } from "../base/respond.ts";
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
  refuseOtherMethods(app, LIBRARIES, ["GET"]);

  app.get(LIBRARY, async ({ req, var: ports }) => {
    const { library } = parse(libraryParams, req.param());
    return json(await registryOf(ports).library(library));
  });
  refuseOtherMethods(app, LIBRARY, ["GET"]);

  definitionRoutes(app, "persona", DEFINITIONS.persona, checkedPersona);
  definitionRoutes(app, "tool", DEFINITIONS.tool, checkedTool);
  definitionRoutes(app, "model-profile", DEFINITIONS["model-profile"], checkedModelProfile);
}

interface Resource<Body> {
  path: "personas" | "tools" | "model-profiles";
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
    const { library } = parse(libraryParams, req.param());
    return page(resource, await registryOf(ports).list(kind, library, pageOptions(req.query())));
  });

  app.post(list, async ({ req, var: { principal, libraries, maxBodyBytes } }) => {
    const { library } = parse(libraryParams, req.param());
    const ports = libraries(principal.tenant);
    ports.registry.checkWriter(principal, library);
    const { id, ...posted } = validate(body, await readJson(req.raw, Math.min(maxBodyBytes, maxBytes)));
    const key = { library, id };
    const definition = await check(ports, key, posted);
    const { version, created } = await ports.registry.add(principal, kind, key, definition);
    if (!created) return json(version);
    return json(version, 201, `${LIBRARIES}/${library}/${path}/${id}/versions/${version.version}`);
  });
  refuseOtherMethods(app, list, ["GET", "POST"]);

  app.get(`${list}/:id`, async ({ req, var: ports }) =>
    json(await registryOf(ports).find(kind, parse(definitionParams, req.param()))),
  );
  refuseOtherMethods(app, `${list}/:id`, ["GET"]);

  app.get(`${list}/:id/versions`, async ({ req, var: ports }) => {
    const reference = parse(definitionParams, req.param());
    return page("versions", await registryOf(ports).versions(kind, reference, pageOptions(req.query())));
  });
  refuseOtherMethods(app, `${list}/:id/versions`, ["GET"]);

  app.get(`${list}/:id/versions/:version`, async ({ req, var: ports }) =>
    json(await registryOf(ports).find(kind, parse(versionParams, req.param()))),
  );
  refuseOtherMethods(app, `${list}/:id/versions/:version`, ["GET"]);
}

function registryOf({ principal, libraries }: HttpEnv["Variables"]): Registry {
  return libraries(principal.tenant).registry;
}

/** Returns the parameters of a path. Throws `NOT_FOUND` if one of them cannot exist. */
function parse<Schema extends z.ZodType>(schema: Schema, params: Record<string, string>): z.output<Schema> {
  const parsed = schema.safeParse(params);
  if (parsed.success) return parsed.data;
  throw new DramatisError("NOT_FOUND", "There is nothing here, or it is not yours.");
}
