/** The routes of `/api/libraries`, described. */
import { z } from "zod";
import { pageSchema } from "../base/query.ts";
import {
  definitionId,
  library,
  libraryId,
  modelProfileBody,
  modelProfileVersion,
  personaBody,
  personaVersion,
  toolBody,
  toolVersion,
  version,
} from "../openapi/library-views.ts";
import { type ApiOperation, BODY_ERRORS } from "../openapi/operation.ts";
import { listOf } from "../openapi/views.ts";

export const LIBRARIES = "/api/libraries";
export const LIBRARY = `${LIBRARIES}/:library` as const;

interface Described {
  /** As in `createPersona`. */
  name: string;
  /** As in `/api/libraries/:library/personas`. */
  path: string;
  /** As a list names its items. */
  resource: string;
  /** In a sentence, with its article. */
  one: string;
  view: z.ZodType;
  body: z.ZodObject;
  about: string;
}

const inLibrary = z.object({ library: libraryId });

function operationsOf({ name, path, resource, one, view, body, about }: Described): ApiOperation[] {
  const list = `${LIBRARY}/${path}`;
  const plural = path.replace("-", " ");
  return [
    {
      id: `create${name}`,
      method: "post",
      path: list,
      tag: "libraries",
      summary: `Add ${one}, or a version of one`,
      description: `For authors and administrators. Content that is new becomes the next version; content that a version has, the same again, answers that version and changes nothing. ${about}`,
      params: inLibrary,
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
      summary: `List a library's ${plural}, the latest version of each`,
      params: inLibrary,
      query: pageSchema,
      answers: [{ status: 200, description: "One page.", body: listOf(resource, view) }],
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    {
      id: `get${name}`,
      method: "get",
      path: `${list}/:id`,
      tag: "libraries",
      summary: `Read the latest version of ${one}`,
      params: inLibrary.extend({ id: definitionId }),
      answers: [{ status: 200, description: "The version.", body: view }],
      errors: ["NOT_FOUND"],
    },
    {
      id: `list${name}Versions`,
      method: "get",
      path: `${list}/:id/versions`,
      tag: "libraries",
      summary: `List the versions of ${one}`,
      params: inLibrary.extend({ id: definitionId }),
      query: pageSchema,
      answers: [{ status: 200, description: "One page.", body: listOf("versions", view) }],
      errors: ["NOT_FOUND", "INVALID_INPUT"],
    },
    {
      id: `get${name}Version`,
      method: "get",
      path: `${list}/:id/versions/:version`,
      tag: "libraries",
      summary: `Read one version of ${one}`,
      params: inLibrary.extend({ id: definitionId, version }),
      answers: [{ status: 200, description: "The version.", body: view }],
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
    description:
      "Those that are part of the deployed Worker stand before those that the tenant's authors wrote.",
    query: pageSchema,
    answers: [{ status: 200, description: "One page.", body: listOf("libraries", library) }],
    errors: ["INVALID_INPUT"],
  },
  {
    id: "getLibrary",
    method: "get",
    path: LIBRARY,
    tag: "libraries",
    summary: "Read a library",
    params: inLibrary,
    answers: [{ status: 200, description: "The library.", body: library }],
    errors: ["NOT_FOUND"],
  },
  ...operationsOf({
    name: "Persona",
    path: "personas",
    resource: "personas",
    one: "a persona",
    view: personaVersion,
    body: personaBody,
    about: "What it refers to must exist; a bare id is of the same library.",
  }),
  ...operationsOf({
    name: "Tool",
    path: "tools",
    resource: "tools",
    one: "a tool",
    view: toolVersion,
    body: toolBody,
    about:
      "The code of the deployed tool that `task` names runs; what is left out is as that tool has it. `effect` cannot promise more than it does.",
  }),
  ...operationsOf({
    name: "ModelProfile",
    path: "model-profiles",
    resource: "modelProfiles",
    one: "a model profile",
    view: modelProfileVersion,
    body: modelProfileBody,
    about: "A base URL must be at a host that the deployer trusts.",
  }),
];
