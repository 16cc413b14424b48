/** `/api/libraries`: versioned definitions. Reading is open to the tenant, writing to authors. */
import type { z } from "zod";
import {
  type AuthoringPorts,
  checkedModelProfile,
  checkedPersona,
  checkedTool,
} from "../../library/authoring.ts";
import type { DefinitionKind, DefinitionTypes } from "../../library/kinds.ts";
import { MAX_DEFINITION_BYTES } from "../../library/kinds.ts";
import type { DefinitionView } from "../../library/views.ts";
import { DramatisError } from "../../shared/errors.ts";
import { isChosenId } from "../../shared/identifiers.ts";
import { validate } from "../../shared/validation.ts";
import { readJson } from "../base/body.ts";
import type { HttpRoutes } from "../base/context.ts";
import { pageOptions } from "../base/query.ts";
import { json, page } from "../base/respond.ts";
import { modelProfileBody, personaBody, toolBody, version } from "../openapi/library-views.ts";
import { LIBRARIES, LIBRARY } from "./library-operations.ts";

const MAX_PERSONA_BYTES = MAX_DEFINITION_BYTES;
/** Tools and model profiles are small. */
const MAX_OTHER_BYTES = 64 * 1024;

interface Resource<Kind extends DefinitionKind, Posted> {
  kind: Kind;
  path: "personas" | "tools" | "model-profiles";
  /** As a list names its items. */
  resource: string;
  maxBytes: number;
  body: z.ZodType<Posted & { id: string }>;
  /** The definition as it is kept; throws `INVALID_INPUT`. */
  check(
    ports: AuthoringPorts,
    target: { library: string; id: string },
    posted: Posted,
  ): Promise<DefinitionTypes[Kind]>;
}

export function libraryRoutes(app: HttpRoutes): void {
  app.get(LIBRARIES, async ({ req, var: { principal, libraries } }) =>
    page("libraries", await libraries().catalogue.libraries(principal.tenant, pageOptions(req.query()))),
  );

  app.get(LIBRARY, async ({ req, var: { principal, libraries } }) =>
    json(await libraries().catalogue.library(principal.tenant, checkedId(req.param("library")))),
  );

  definitionRoutes(app, {
    kind: "persona",
    path: "personas",
    resource: "personas",
    maxBytes: MAX_PERSONA_BYTES,
    body: personaBody,
    check: (ports, { library }, { id: _, ...persona }) => checkedPersona(ports, library, persona),
  });
  definitionRoutes(app, {
    kind: "tool",
    path: "tools",
    resource: "tools",
    maxBytes: MAX_OTHER_BYTES,
    body: toolBody,
    check: (ports, _, tool) => checkedTool(ports, tool),
  });
  definitionRoutes(app, {
    kind: "model-profile",
    path: "model-profiles",
    resource: "modelProfiles",
    maxBytes: MAX_OTHER_BYTES,
    body: modelProfileBody,
    check: (ports, target, { id: _, ...profile }) => checkedModelProfile(ports, target, profile),
  });
}

function definitionRoutes<Kind extends DefinitionKind, Posted>(
  app: HttpRoutes,
  { kind, path, resource, maxBytes, body, check }: Resource<Kind, Posted>,
): void {
  const list = `${LIBRARY}/${path}` as const;

  app.get(list, async ({ req, var: { principal, libraries } }) => {
    const library = checkedId(req.param("library"));
    const options = pageOptions(req.query());
    return page(resource, await libraries().catalogue.list(principal.tenant, kind, library, options));
  });

  app.post(list, async ({ req, var: { principal, libraries, maxBodyBytes } }) => {
    const library = checkedId(req.param("library"));
    const { catalogue, authoring } = libraries();
    catalogue.checkWriter(principal, library);
    const posted = validate(body, await readJson(req.raw, Math.min(maxBodyBytes, maxBytes)));
    const target = { library, id: posted.id };
    const definition = await check(authoring(principal.tenant), target, posted);
    const { view, created } = await catalogue.add(principal, kind, target, definition, Date.now());
    return created ? json(view, 201, locationOf(path, view)) : json(view);
  });

  app.get(`${list}/:id`, async ({ req, var: { principal, libraries } }) => {
    const reference = { library: checkedId(req.param("library")), id: checkedId(req.param("id")) };
    return json(await libraries().catalogue.find(principal.tenant, kind, reference));
  });

  app.get(`${list}/:id/versions`, async ({ req, var: { principal, libraries } }) => {
    const reference = { library: checkedId(req.param("library")), id: checkedId(req.param("id")) };
    const options = pageOptions(req.query());
    const versions = await libraries().catalogue.versions(principal.tenant, kind, reference, options);
    return page("versions", versions);
  });

  app.get(`${list}/:id/versions/:version`, async ({ req, var: { principal, libraries } }) => {
    const number = version.safeParse(req.param("version"));
    if (!number.success) throw missing();
    const reference = {
      library: checkedId(req.param("library")),
      id: checkedId(req.param("id")),
      version: number.data,
    };
    return json(await libraries().catalogue.find(principal.tenant, kind, reference));
  });
}

function locationOf(path: string, { library, id, version }: DefinitionView): string {
  return `${LIBRARIES}/${library}/${path}/${id}/versions/${version}`;
}

function checkedId(id: string): string {
  if (!isChosenId(id)) throw missing();
  return id;
}

function missing(): DramatisError {
  return new DramatisError("NOT_FOUND", "There is nothing here, or it is not yours.");
}
