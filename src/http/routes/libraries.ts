/** `/api/libraries`: versioned definitions. Every principal of the tenant may read, authors and administrators may write. */
import { z } from "zod";
import { checkedAction, checkedPrompt, checkedTask } from "../../library/authoring/author-tasks.ts";
import { checkedWorkflow } from "../../library/authoring/author-workflows.ts";
import {
  checkedModelProfile,
  checkedPersona,
  checkedSkill,
  checkedTool,
  type LibraryPorts,
} from "../../library/authoring/authoring.ts";
import {
  type DefinitionKind,
  type DefinitionTypes,
  kindName,
  MAX_DEFINITION_BYTES,
} from "../../library/definitions/definition.ts";
import type { DefinitionKey } from "../../library/definitions/reference.ts";
import { libraryView } from "../../library/registry/definition-source.ts";
import type { Registry } from "../../library/registry/registry.ts";
import { workflowSchema } from "../../library/workflows/workflow-schema.ts";
import { ids } from "../../protocol/scalars.ts";
import { validate } from "../../shared/validation.ts";
import type { RequestVariables } from "../base/context.ts";
import { pageSchema } from "../base/query.ts";
import { json, page } from "../base/respond.ts";
import {
  actionBody,
  actionVersion,
  modelProfileBody,
  modelProfileVersion,
  personaBody,
  personaVersion,
  promptBody,
  promptVersion,
  skillBody,
  skillVersion,
  taskBody,
  taskVersion,
  toolBody,
  toolVersion,
  versionNumber,
  workflowBody,
  workflowVersion,
} from "../openapi/library-views.ts";
import { ok, onePage } from "../openapi/operation.ts";
import { type Route, route } from "../openapi/route.ts";

const LIBRARIES = "/api/libraries";
const LIBRARY = `${LIBRARIES}/:library` as const;

const libraryParams = z.object({ library: ids.library });
const definitionParams = libraryParams.extend({ id: ids.definition });
const versionParams = definitionParams.extend({ version: versionNumber });

interface Resource {
  /** Part of operation ids: `createPersona`. */
  name: string;
  /** Last part of the path: `/api/libraries/:library/personas`. */
  path: string;
  /** Name of the items in a list. */
  resource: string;
  view: z.ZodType;
  maxBytes: number;
  /** Added to the description of the operation that creates one. */
  about: string;
}

/** Maximum size of tools and model profiles, which are small. */
const MAX_SMALL_BYTES = 64 * 1024;

const DEFINITIONS: Record<DefinitionKind, Resource> = {
  persona: {
    name: "Persona",
    path: "personas",
    resource: "personas",
    view: personaVersion,
    maxBytes: MAX_DEFINITION_BYTES,
    about:
      "Everything that the persona refers to must exist. A bare id means a definition of the same library.",
  },
  tool: {
    name: "Tool",
    path: "tools",
    resource: "tools",
    view: toolVersion,
    maxBytes: MAX_SMALL_BYTES,
    about:
      "The tool runs the task, or the code of the deployed tool, that `target.task` names. With `target: {workflow}` each call runs a workflow, and its output is the result. `task`, `taskId`, `workflowId`, `targetType` with `targetId`, and `retry.timeoutMs` are accepted, too. With `target: {agent}` an agent answers: `modes` lists the modes among which the model may choose, both when absent, and `mode` is the usual one. Absent fields have the values of the target. `effect` cannot promise more than the target does; a `once` tool takes no `retry`. `inputMapping` makes the deployed tool's input from the model's.",
  },
  "model-profile": {
    name: "ModelProfile",
    path: "model-profiles",
    resource: "modelProfiles",
    view: modelProfileVersion,
    maxBytes: MAX_SMALL_BYTES,
    about: "A base URL must be at a host that the deployer trusts.",
  },
  task: {
    name: "Task",
    path: "tasks",
    resource: "tasks",
    view: taskVersion,
    maxBytes: MAX_SMALL_BYTES,
    about:
      "Everything that its steps refer to must exist. A bare id means a definition of the same library. Requests go only to hosts that the deployer lists.",
  },
  action: {
    name: "Action",
    path: "actions",
    resource: "actions",
    view: actionVersion,
    maxBytes: MAX_SMALL_BYTES,
    about: "Steps of tasks name it by reference. Functions are actions of deployed libraries only.",
  },
  prompt: {
    name: "Prompt",
    path: "prompts",
    resource: "prompts",
    view: promptVersion,
    maxBytes: MAX_SMALL_BYTES,
    about: "Actions of the kind `llm` name it by reference.",
  },
  workflow: {
    name: "Workflow",
    path: "workflows",
    resource: "workflows",
    view: workflowVersion,
    maxBytes: MAX_DEFINITION_BYTES,
    about:
      "Every task and workflow in its nodes must exist. Every run of it must be able to continue and to end.",
  },
  skill: {
    name: "Skill",
    path: "skills",
    resource: "skills",
    view: skillVersion,
    maxBytes: MAX_DEFINITION_BYTES,
    about: "The id is the `name` in `SKILL.md`. Personas name the skill by reference in `skills`.",
  },
};

/** Returns the routes of one kind. `check` returns the definition to add, and throws `INVALID_INPUT`. */
function routesOf<Kind extends DefinitionKind, Body extends { id: string }>(
  kind: Kind,
  body: z.ZodType<Body>,
  check: (
    ports: LibraryPorts,
    key: DefinitionKey,
    posted: Omit<Body, "id">,
  ) => Promise<DefinitionTypes[Kind]>,
): Route[] {
  const { name, path, resource, view, maxBytes, about } = DEFINITIONS[kind];
  const list = `${LIBRARY}/${path}`;
  const one = `a ${kindName(kind)}`;
  return [
    route({
      id: `create${name}`,
      method: "post",
      path: list,
      tag: "libraries",
      summary: `Add ${one}, or a version of one`,
      description: `For authors and administrators. New content becomes the next version. If a version already has this content, that version is returned. ${about}`,
      params: libraryParams,
      body,
      answers: [
        { status: 201, description: "The new version.", body: view, location: true },
        { status: 200, description: "The version that has this content.", body: view },
      ],
      errors: ["FORBIDDEN", "CONFLICT"],
      maxBytes,
      permit: (ports, { library = "" }) => registryOf(ports).checkWriter(ports.principal, library),
      handle: async ({ params: { library }, body: { id, ...posted } }, { principal, libraries }) => {
        const ports = libraries(principal.tenant);
        const key = { library, id };
        const definition = await check(ports, key, posted);
        const { version, created } = await ports.registry.add(principal, kind, key, definition);
        if (!created) return json(version);
        return json(version, 201, `${LIBRARIES}/${library}/${path}/${id}/versions/${version.version}`);
      },
    }),
    route({
      id: `list${name}s`,
      method: "get",
      path: list,
      tag: "libraries",
      summary: `List the ${kindName(kind)}s of a library, the latest version of each`,
      params: libraryParams,
      query: pageSchema,
      answers: onePage(resource, view),
      handle: async ({ params, query }, ports) =>
        page(resource, await registryOf(ports).list(kind, params.library, query)),
    }),
    route({
      id: `get${name}`,
      method: "get",
      path: `${list}/:id`,
      tag: "libraries",
      summary: `Read the latest version of ${one}`,
      params: definitionParams,
      answers: ok("The version.", view),
      handle: async ({ params }, ports) => json(await registryOf(ports).find(kind, params)),
    }),
    route({
      id: `list${name}Versions`,
      method: "get",
      path: `${list}/:id/versions`,
      tag: "libraries",
      summary: `List the versions of ${one}`,
      params: definitionParams,
      query: pageSchema,
      answers: onePage("versions", view),
      handle: async ({ params, query }, ports) =>
        page("versions", await registryOf(ports).versions(kind, params, query)),
    }),
    route({
      id: `get${name}Version`,
      method: "get",
      path: `${list}/:id/versions/:version`,
      tag: "libraries",
      summary: `Read a version of ${one}`,
      params: versionParams,
      answers: ok("The version.", view),
      handle: async ({ params }, ports) => json(await registryOf(ports).find(kind, params)),
    }),
  ];
}

export const libraryRoutes: readonly Route[] = [
  route({
    id: "listLibraries",
    method: "get",
    path: LIBRARIES,
    tag: "libraries",
    summary: "List the libraries",
    description: "Deployed libraries come first, then libraries by authors of the tenant.",
    query: pageSchema,
    answers: onePage("libraries", libraryView),
    handle: async ({ query }, ports) => page("libraries", await registryOf(ports).libraries(query)),
  }),
  route({
    id: "getLibrary",
    method: "get",
    path: LIBRARY,
    tag: "libraries",
    summary: "Read a library",
    params: libraryParams,
    answers: ok("The library.", libraryView),
    handle: async ({ params }, ports) => json(await registryOf(ports).library(params.library)),
  }),
  ...routesOf("persona", personaBody, checkedPersona),
  ...routesOf("tool", toolBody, checkedTool),
  ...routesOf("model-profile", modelProfileBody, checkedModelProfile),
  ...routesOf("task", taskBody, checkedTask),
  ...routesOf("action", actionBody, checkedAction),
  ...routesOf("prompt", promptBody, checkedPrompt),
  ...routesOf("workflow", workflowBody, (ports, key, posted) =>
    checkedWorkflow(ports, key, validate(workflowSchema, posted)),
  ),
  ...routesOf("skill", skillBody, checkedSkill),
];

function registryOf({ principal, libraries }: RequestVariables): Registry {
  return libraries(principal.tenant).registry;
}
