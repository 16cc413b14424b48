/**
 * What an author may add to the registry.
 *
 * AUTHOR-1  All that a definition refers to exists when it is added. What a persona refers to by a bare id is of its own
 *           library.
 * AUTHOR-2  A tool by API is data over the code of a deployed tool; it cannot promise more about repeating it than that does.
 * AUTHOR-3  A model profile by API leads to no host but those that the deployer trusts, and names no key but those that the
 *           deployer lets it name: the key would go there.
 */

import type { ModelProfile } from "../model/profile.ts";
import type { Persona, ToolDefinition, ToolEffect } from "../protocol/definitions.ts";
import { defined } from "../shared/defined.ts";
import { DramatisError, type InputIssue } from "../shared/errors.ts";
import type { DefinitionReference } from "../shared/identifiers.ts";
import type { JsonObject } from "../shared/json.ts";
import { isPlainUrl } from "../shared/text.ts";
import { claimsMore } from "./effects.ts";
import { inputSchemaIssues } from "./input-schema.ts";
import { formatReference, parseReference } from "./reference.ts";
import type { CodeRegistry, Registry } from "./registry.ts";
import { refuseEqualNames, resolveFallbacks } from "./resolve.ts";

/** What checks ask. */
export interface AuthoringPorts {
  /** That of the author's tenant. */
  registry: Registry;
  code: CodeRegistry;
  /** Whether the key of a model profile may go where the profile says. */
  mayReceiveKey(profile: ModelProfile): boolean;
}

/** A tool as an author posts it: what is left out is as the deployed tool has it. */
export interface PostedTool {
  name: string;
  description: string;
  task: DefinitionReference;
  inputSchema?: JsonObject;
  effect?: ToolEffect;
  timeoutMs?: number;
}

/** The persona, if all that it refers to exists; throws `INVALID_INPUT` naming the field that is wrong. */
export async function checkedPersona(
  { registry }: AuthoringPorts,
  library: string,
  persona: Persona,
): Promise<Persona> {
  const { identity, tools } = persona;
  const { modelProfileId } = identity;
  if (modelProfileId !== undefined) {
    await existing("/identity/modelProfileId", async () => {
      const profile = await registry.modelProfile(parseReference(modelProfileId, library));
      await resolveFallbacks(registry, profile);
    });
  }
  const resolved = await Promise.all(
    (tools?.toolIds ?? []).map((tool, index) =>
      existing(`/tools/toolIds/${index}`, () => registry.tool(parseReference(tool, library))),
    ),
  );
  await existing("/tools/toolIds", async () => refuseEqualNames(resolved));
  return persona;
}

/** The tool with all that it left out; throws `INVALID_INPUT` naming the field that is wrong. */
export async function checkedTool({ code }: AuthoringPorts, posted: PostedTool): Promise<ToolDefinition> {
  const target = await existing("/task", async () => parseReference(posted.task));
  const deployed = code.toolCode(target.library, target.id)?.definition;
  if (target.version !== undefined) {
    throw invalid("/task", "Must name no version: what runs is the code that is deployed.");
  }
  if (deployed === undefined) {
    throw invalid("/task", `There is no deployed tool "${formatReference(target)}".`);
  }
  const { name, description, inputSchema, effect, timeoutMs } = posted;
  if (effect !== undefined && claimsMore(effect, deployed.effect)) {
    throw invalid("/effect", `Must not promise more than the deployed tool, which is ${deployed.effect}.`);
  }
  const issues = inputSchema === undefined ? [] : inputSchemaIssues(inputSchema, "/inputSchema");
  if (issues.length > 0) throw refused(issues);
  return {
    name,
    description,
    inputSchema: inputSchema ?? deployed.inputSchema,
    effect: effect ?? deployed.effect,
    timeoutMs: timeoutMs ?? deployed.timeoutMs,
    task: formatReference(target),
  };
}

/** The profile, if its address is trusted with its key and those that stand in exist; throws `INVALID_INPUT`. */
export async function checkedModelProfile(
  { registry, mayReceiveKey }: AuthoringPorts,
  { library, id }: { library: string; id: string },
  profile: ModelProfile,
): Promise<ModelProfile> {
  const { provider, baseUrl, apiKeySecret: _, ...rest } = profile;
  if (baseUrl !== undefined) {
    if (provider === "ai-sdk" || provider === "offline") {
      throw invalid("/baseUrl", `The provider ${provider} takes no base URL.`);
    }
    if (!isPlainUrl(baseUrl)) throw invalid("/baseUrl", "Must have no user, password, query and fragment.");
  }
  if (!mayReceiveKey(profile)) {
    const address = { ...rest, provider, ...defined({ baseUrl }) };
    throw mayReceiveKey(address)
      ? invalid(
          "/apiKeySecret",
          "Must name a key that the deployer lets profiles name: list it in DRAMATIS_MODEL_SECRETS, or in `models.allowedSecrets` of dramatis().",
        )
      : invalid(
          "/baseUrl",
          "Must be at a host that the deployer trusts with the key: name it in DRAMATIS_MODEL_HOSTS, or in `models.allowedHosts` of dramatis().",
        );
  }
  await existing("/fallbacks", async () => {
    for (const reference of profile.fallbacks ?? []) {
      const target = parseReference(reference, library);
      if (target.library === library && target.id === id)
        throw new DramatisError("INVALID_INPUT", "A model profile cannot stand in for itself.");
    }
    await resolveFallbacks(registry, { library, id, definition: profile });
  });
  return profile;
}

/** What `find` answers; what it does not find, or refuses, is told of the place that asked for it. */
async function existing<Found>(path: string, find: () => Promise<Found>): Promise<Found> {
  try {
    return await find();
  } catch (error) {
    if (error instanceof DramatisError && (error.code === "NOT_FOUND" || error.code === "INVALID_INPUT")) {
      throw invalid(path, error.message);
    }
    throw error;
  }
}

function invalid(path: string, message: string): DramatisError {
  return refused([{ path, message }]);
}

function refused(issues: InputIssue[]): DramatisError {
  const [first = { path: "", message: "" }] = issues;
  return new DramatisError("INVALID_INPUT", `The definition is not valid: ${first.path}: ${first.message}`, {
    errors: issues.slice(0, 20),
  });
}
