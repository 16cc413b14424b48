/** The operations of `/api/libraries`. */
import { z } from "zod";
import {
  DEFINITION_KINDS,
  type DefinitionKind,
  kindName,
  MAX_DEFINITION_BYTES,
} from "../../library/definitions/definition.ts";
import { ids } from "../../protocol/scalars.ts";
import { pageSchema } from "../base/query.ts";
import {
  actionBody,
  actionVersion,
  library,
  modelProfileBody,
  modelProfileVersion,
  personaBody,
  personaVersion,
  promptBody,
  promptVersion,
  taskBody,
  taskVersion,
  toolBody,
  toolVersion,
  versionNumber,
  workflowBody,
  workflowVersion,
} from "../openapi/library-views.ts";
import { type ApiOperation, BODY_ERRORS, ok, onePage } from "../openapi/operation.ts";

export const LIBRARIES = "/api/libraries";
export const LIBRARY = `${LIBRARIES}/:library` as const;

export const libraryParams = z.object({ library: ids.library });
export const definitionParams = libraryParams.extend({ id: ids.definition });
export const versionParams = definitionParams.extend({ version: versionNumber });

interface Resource {
  /** Part of operation ids: `createPersona`. */
  name: string;
  /** Last part of the path: `/api/libraries/:library/personas`. */
  path: string;
  /** Name of the items in a list. */
  resource: string;
  view: z.ZodType;
  body: z.ZodType;
  maxBytes: number;
  /** Added to the description of the operation that creates one. */
  about: string;
}

/** Maximum size of tools and model profiles, which are small. */
const MAX_SMALL_BYTES = 64 * 1024;

/** The resources of a library, by the kind of definition. */
export const DEFINITIONS = {
  persona: {
    name: "Persona",
    path: "personas",
    resource: "personas",
    view: personaVersion,
    body: personaBody,
    maxBytes: MAX_DEFINITION_BYTES,
    about:
      "Everything that the persona refers to must exist. A bare id means a definition of the same library.",
  },
  tool: {
    name: "Tool",
    path: "tools",
    resource: "tools",
    view: toolVersion,
    body: toolBody,
    maxBytes: MAX_SMALL_BYTES,
    about:
      "The tool runs the task, or the code of the deployed tool, that `target.task` names. With `target: {workflow}` each call runs a workflow, and its output is the result. `task`, `taskId`, `workflowId`, `targetType` with `targetId`, and `retry.timeoutMs` are accepted, too. With `target: {agent}` an agent answers: `modes` lists the modes among which the model may choose, both when absent, and `mode` is the usual one. Absent fields have the values of the target. `effect` cannot promise more than the target does; a `once` tool takes no `retry`. `inputMapping` makes the deployed tool's input from the model's.",
  },
  "model-profile": {
    name: "ModelProfile",
    path: "model-profiles",
    resource: "modelProfiles",
    view: modelProfileVersion,
    body: modelProfileBody,
    maxBytes: MAX_SMALL_BYTES,
    about: "A base URL must be at a host that the deployer trusts.",
  },
  task: {
    name: "Task",
    path: "tasks",
    resource: "tasks",
    view: taskVersion,
    body: taskBody,
    maxBytes: MAX_SMALL_BYTES,
    about:
      "Everything that its steps refer to must exist. A bare id means a definition of the same library. Requests go only to hosts that the deployer lists.",
  },
  action: {
    name: "Action",
    path: "actions",
    resource: "actions",
    view: actionVersion,
    body: actionBody,
    maxBytes: MAX_SMALL_BYTES,
    about: "Steps of tasks name it by reference. Functions are actions of deployed libraries only.",
  },
  prompt: {
    name: "Prompt",
    path: "prompts",
    resource: "prompts",
    view: promptVersion,
    body: promptBody,
    maxBytes: MAX_SMALL_BYTES,
    about: "Actions of the kind `llm` name it by reference.",
  },
  workflow: {
    name: "Workflow",
    path: "workflows",
    resource: "workflows",
    view: workflowVersion,
    body: workflowBody,
    maxBytes: MAX_DEFINITION_BYTES,
    about:
      "Every task and workflow that its nodes name must exist, and every run of it must be able to go on and end.",
  },
} as const satisfies Record<DefinitionKind, Resource>;

function operationsOf(kind: DefinitionKind): ApiOperation[] {
  const { name, path, resource, view, body, about }: Resource = DEFINITIONS[kind];
  const list = `${LIBRARY}/${path}`;
  const one = `a ${kindName(kind)}`;
  return [
    {
      id: `create${name}`,
      method: "post",
      path: list,
      tag: "libraries",
      summary: `Add ${one}, or a version of one`,
      description: `For authors and administrators. New content becomes the next version. Content that a version already has returns that version and changes nothing. ${about}`,
      params: libraryParams,
      body,
      answers: [
        { status: 201, description: "The new version.", body: view, location: true },
        { status: 200, description: "The version that has this content.", body: view },
      ],
      errors: [...BODY_ERRORS, "NOT_FOUND", "FORBIDDEN", "CONFLICT"],
    },
    {
      id: `list${name}s`,
      method: "get",
      path: list,
      tag: "libraries",
      summary: `List the ${kindName(kind)}s of a library, the latest version of each`,
      params: libraryParams,
      query: pageSchema,
      answers: onePage(resource, view),
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    {
      id: `get${name}`,
      method: "get",
      path: `${list}/:id`,
      tag: "libraries",
      summary: `Read the latest version of ${one}`,
      params: definitionParams,
      answers: ok("The version.", view),
      errors: ["NOT_FOUND"],
    },
    {
      id: `list${name}Versions`,
      method: "get",
      path: `${list}/:id/versions`,
      tag: "libraries",
      summary: `List the versions of ${one}`,
      params: definitionParams,
      query: pageSchema,
      answers: onePage("versions", view),
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    {
      id: `get${name}Version`,
      method: "get",
      path: `${list}/:id/versions/:version`,
      tag: "libraries",
      summary: `Read a version of ${one}`,
      params: versionParams,
      answers: ok("The version.", view),
      errors: ["NOT_FOUND"],
    },
  ];
}

export const libraryOperations: readonly ApiOperation[] = [
  {
    id: "listLibraries",
    method: "get",
    path: LIBRARIES,
    tag: "libraries",
    summary: "List the libraries",
    description: "Deployed libraries come first, then those that authors of the tenant wrote.",
    query: pageSchema,
    answers: onePage("libraries", library),
    errors: ["INVALID_INPUT"],
  },
  {
    id: "getLibrary",
    method: "get",
    path: LIBRARY,
    tag: "libraries",
    summary: "Read a library",
    params: libraryParams,
    answers: ok("The library.", library),
    errors: ["NOT_FOUND"],
  },
  ...DEFINITION_KINDS.flatMap(operationsOf),
];
